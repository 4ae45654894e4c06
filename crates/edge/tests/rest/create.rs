//! `POST /v1/grabs`.

use axum::body::Body;
use grabd_proto::v1::{
    CaptureOptions, CreateGrabRequest, CreateGrabResponse, CreateMode, ErrorCode, Grab, GrabStatus, Rectangle,
    SettledBy, Timings, Unparsed,
};

use crate::support::{POLICY, STATE, TestApp, error_status, get, grab, post, with_limit_headers};

const ID: &str = "01990000-0000-7000-8000-000000000001";

fn created(grab: Grab, replayed: bool) -> CreateGrabResponse {
    CreateGrabResponse { grab: Some(grab), replayed }
}

fn done() -> Grab {
    Grab {
        live: true,
        image_url: Some("https://img.grabd.example/Zx9.png".to_owned()),
        bytes: Some(48_213),
        execution_ms: Some(1830),
        final_url: Some("https://example.com/home".to_owned()),
        http_status: Some(200),
        settled_by: SettledBy::Quiet.into(),
        blocked_requests: Some(0),
        image_width: Some(1280),
        image_height: Some(720),
        truncated: Some(false),
        title: Some("Home".to_owned()),
        lang: Some("en".to_owned()),
        page_width: Some(1280),
        page_height: Some(2000),
        words: Some(320),
        redirects: Some(1),
        timings: Some(Timings { queued_ms: Some(20), navigate_ms: 30, load_ms: None, settle_ms: 40, shot_ms: 50 }),
        ..grab(GrabStatus::Done, 4)
    }
}

fn create_request(url: &str) -> CreateGrabRequest {
    with_options(CaptureOptions { url: Some(url.to_owned()), ..CaptureOptions::default() })
}

fn with_options(options: CaptureOptions) -> CreateGrabRequest {
    CreateGrabRequest { options: Some(options), mode: CreateMode::Sync.into(), ..CreateGrabRequest::default() }
}

fn unparsed_field(field: &str, seen: &str) -> Unparsed {
    Unparsed { field: field.to_owned(), seen: seen.to_owned() }
}

#[tokio::test]
async fn create_returns_a_done_grab_with_all_members_in_order() {
    for app in TestApp::both().await {
        app.core.create.respond_with(|| with_limit_headers(created(done(), false)));
        let response = app.create(r#"{"url":"https://example.com/"}"#).await;
        assert_eq!(response.status, 200);
        assert_eq!(
            response.text(),
            concat!(
                r#"{"id":"01990000-0000-7000-8000-000000000001","status":"done","created_at":"2026-11-20T20:32:54.120Z","#,
                r#""target_url":"https://example.com/","image_url":"https://img.grabd.example/Zx9.png","width":1280,"#,
                r#""height":720,"format":"png","bytes":48213,"execution_ms":1830,"error_message":null,"#,
                r#""final_url":"https://example.com/home","http_status":200,"settled_by":"quiet","blocked_requests":0,"#,
                r#""image_width":1280,"image_height":720,"truncated":false,"warnings":[],"#,
                r#""title":"Home","description":null,"lang":"en","canonical_url":null,"icon_url":null,"open_graph":null,"#,
                r#""page_width":1280,"page_height":2000,"redirects":1,"timings":{"queued_ms":20,"navigate_ms":30,"#,
                r#""load_ms":null,"settle_ms":40,"shot_ms":50},"image_sha256":null,"challenge":null,"words":320}"#
            )
        );
        assert_eq!(response.header("content-type"), "application/json");
        assert_eq!(response.header("location"), format!("/v1/grabs/{ID}"));
        assert_eq!(response.header("cache-control"), "private, no-store");
        assert_eq!(response.header("ratelimit-policy"), POLICY);
        assert_eq!(response.header("ratelimit"), STATE);
        for absent in ["retry-after", "preference-applied", "idempotent-replayed", "vary"] {
            assert_eq!(response.header(absent), "", "{absent}");
        }
        assert_eq!(app.core.create.take_request().1, create_request("https://example.com/"));
    }
}

#[tokio::test]
async fn members_of_the_wrong_type_are_forwarded_as_unparsed() {
    let app = TestApp::new();
    app.core.create.respond_with(|| with_limit_headers(created(done(), false)));
    let url = || CaptureOptions { url: Some("u".to_owned()), ..CaptureOptions::default() };
    let all_members = with_options(CaptureOptions {
        width: Some(800),
        height: Some(600),
        format: Some("webp".to_owned()),
        full_page: Some(true),
        delay_ms: Some(250),
        selector: Some("#a".to_owned()),
        ..url()
    });
    let without_url =
        |unparsed: Vec<Unparsed>| CreateGrabRequest { unparsed, ..with_options(CaptureOptions::default()) };
    let without_options = |unparsed: Vec<Unparsed>| CreateGrabRequest { options: None, unparsed, ..create_request("") };
    let with_url = |unparsed: Vec<Unparsed>| CreateGrabRequest { unparsed, ..create_request("u") };
    let behaviour = with_options(CaptureOptions {
        javascript: Some(false),
        fail_on_status: vec!["4xx".to_owned(), "503".to_owned()],
        clip: Some(Rectangle { x: 0, y: 10, width: 20, height: 30 }),
        click: vec!["a".to_owned()],
        ..url()
    });
    let cases = [
        (
            r#"{"url":"u","javascript":false,"fail_on_status":["4xx",503],"clip":{"height":30,"width":20,"y":10.0,"x":0},"click":["a"]}"#,
            behaviour,
        ),
        (r#"{"url":"u","fail_on_status":[true]}"#, with_url(vec![unparsed_field("fail_on_status", "[true]")])),
        (r#"{"url":"u","fail_on_status":404}"#, with_url(vec![unparsed_field("fail_on_status", "404")])),
        (
            r#"{"url":"u","clip":{"x":0,"y":0,"width":1}}"#,
            with_url(vec![unparsed_field("clip", r#"{"x":0,"y":0,"width":1}"#)]),
        ),
        (r#"{"url":"u","clip":[0,0,1,1]}"#, with_url(vec![unparsed_field("clip", "[0,0,1,1]")])),
        (
            r##"{"url":"u","width":800,"height":600.0,"format":"webp","full_page":true,"delay_ms":2.5e2,"selector":"#a"}"##,
            all_members,
        ),
        ("{}", without_url(vec![])),
        (r#"{"url":"u","selector":null}"#, create_request("u")),
        (
            r#"{"url":"u","Width":"x","other":{"a":[null]},"async":"x"}"#,
            CreateGrabRequest { unknown: ["Width", "async", "other"].map(str::to_owned).into(), ..create_request("u") },
        ),
        (
            r#"{"url":"u","width":0,"delay_ms":-1}"#,
            with_options(CaptureOptions { width: Some(0), delay_ms: Some(-1), ..url() }),
        ),
        (r#"{"url":"u","selector":""}"#, with_options(CaptureOptions { selector: Some(String::new()), ..url() })),
        (r#"{"url":5}"#, without_url(vec![unparsed_field("url", "5")])),
        (r#"{"url":null}"#, without_url(vec![unparsed_field("url", "null")])),
        (r#"{"url":"\ud800"}"#, without_url(vec![unparsed_field("url", r#""\ud800""#)])),
        (r#"{"url":"u","width":"abc"}"#, with_url(vec![unparsed_field("width", "\"abc\"")])),
        (
            r#"{"url":"u","width":null,"height":null}"#,
            with_url(vec![unparsed_field("width", "null"), unparsed_field("height", "null")]),
        ),
        (r#"{"url":"u","width":1.5}"#, with_url(vec![unparsed_field("width", "1.5")])),
        (r#"{"url":"u","width":1e400}"#, with_url(vec![unparsed_field("width", "1e400")])),
        (
            r#"{"url":"u","height":9223372036854775808}"#,
            with_url(vec![unparsed_field("height", "9223372036854775808")]),
        ),
        (r#"{"url":"u","height":{"a": 1}}"#, with_url(vec![unparsed_field("height", "{\"a\": 1}")])),
        (r#"{"url":"u","format":7}"#, with_url(vec![unparsed_field("format", "7")])),
        (r#"{"url":"u","format":"gif"}"#, with_options(CaptureOptions { format: Some("gif".to_owned()), ..url() })),
        (r#"{"url":"u","width":2147483648}"#, with_url(vec![unparsed_field("width", "2147483648")])),
        (r#"{"url":"u","format":null}"#, with_url(vec![unparsed_field("format", "null")])),
        (r#"{"url":"u","full_page":"yes"}"#, with_url(vec![unparsed_field("full_page", "\"yes\"")])),
        (r#"{"url":"u","full_page":1}"#, with_url(vec![unparsed_field("full_page", "1")])),
        (r#"{"url":"u","delay_ms":"1"}"#, with_url(vec![unparsed_field("delay_ms", "\"1\"")])),
        (r#"{"url":"u","delay_ms":null}"#, with_url(vec![unparsed_field("delay_ms", "null")])),
        (r#"{"url":"u","selector":5}"#, with_url(vec![unparsed_field("selector", "5")])),
        (r#"{"url":"u","selector":[]}"#, with_url(vec![unparsed_field("selector", "[]")])),
        ("", without_options(vec![unparsed_field("body", "an empty body")])),
        ("[]", without_options(vec![unparsed_field("body", "[]")])),
        (r#"{"url" "u"}"#, without_options(vec![unparsed_field("body", "malformed JSON at line 1 column 8")])),
        (r#"{"url":"u","url":"u"}"#, without_options(vec![unparsed_field("body", "the member \"url\" twice")])),
        (r#"{"url":"u","x":{"y":1,"y":1}}"#, without_options(vec![unparsed_field("body", "the member \"y\" twice")])),
        (r#"{"url":"u"} x"#, without_options(vec![unparsed_field("body", "malformed JSON at line 1 column 13")])),
    ];
    for (body, expected) in cases {
        let response = app.create(body).await;
        assert_eq!(response.status, 200, "only the core may reject a request: {body}");
        assert_eq!(app.core.create.take_request().1, expected, "{body}");
    }
    let long = "x".repeat(1000);
    app.create(&format!(r#"{{"url":"u","width":"{long}"}}"#)).await;
    assert_eq!(app.core.create.take_request().1.unparsed[0].seen.len(), 200);
}

#[tokio::test]
async fn unknown_members_are_named_to_the_core_and_in_errors() {
    let app = TestApp::new();
    let body = r#"{"ulr":"https://example.com/","b\nc":1,"g":1,"f":1,"e":1,"d":1}"#;
    app.core.create.respond_with(|| Err(error_status(ErrorCode::BadRequest, "`url` must be present.", None)));
    let message = app.create(body).await.assert_error(400, "bad_request");
    assert_eq!(message, "`url` must be present. Ignored, since no such option exists: bc, d, e, f, g.");
    assert_eq!(app.core.create.take_request().1.unknown, ["bc", "d", "e", "f", "g"]);
    let message = app.create(r#"{"ulr":"https://example.com/"}"#).await.assert_error(400, "bad_request");
    assert_eq!(message, "`url` must be present. Ignored, since no such option exists: ulr (did you mean url?).");
    app.core.create.respond_with(|| Err(error_status(ErrorCode::CreditsExhausted, "No live credits left.", None)));
    let message = app.create(body).await.assert_error(402, "credits_exhausted");
    assert_eq!(message, "No live credits left.");
}

#[tokio::test]
async fn warnings_about_unknown_members_come_before_the_end() {
    let app = TestApp::new();
    let warning = "unknown_option:widht (did you mean width?)";
    let pending = move || Grab { warnings: vec![warning.to_owned()], ..grab(GrabStatus::Pending, 1) };
    app.core.create.respond_with(move || with_limit_headers(created(pending(), false)));
    let response = app.create(r#"{"url":"u","widht":800}"#).await;
    assert_eq!(response.status, 202);
    assert_eq!(response.json()["warnings"], serde_json::json!([warning]));
}

#[tokio::test]
async fn bodies_that_are_not_json_are_reported_to_the_core() {
    let app = TestApp::new();
    app.core.create.respond_with(|| Err(error_status(ErrorCode::BadRequest, "`body` must be a JSON object.", None)));
    let json = r#"{"url":"u"}"#.as_bytes().to_vec();
    let cases = [
        (Some("text/plain"), json.clone(), Some("text/plain")),
        (None, json.clone(), Some("no Content-Type")),
        (Some("application/json; charset=utf-8"), json, None),
        (Some("application/json"), vec![b' '; 4_194_305], Some("4194305 bytes where 4194304 are the most")),
        (Some("text/plain"), vec![b' '; 5_000_000], Some("5000000 bytes where 4194304 are the most")),
        (Some("application/json"), b"{\"url\":\"\xff\"}".to_vec(), Some("bytes that are not UTF-8 at 8")),
    ];
    for (media_type, body, seen) in cases {
        let mut request = get("/v1/grabs").method("POST");
        if let Some(media_type) = media_type {
            request = request.header("content-type", media_type);
        }
        let response = app.send(request.body(Body::from(body)).unwrap()).await;
        assert_eq!(response.assert_error(400, "bad_request"), "`body` must be a JSON object.");
        let expected: Vec<Unparsed> = seen.map(|seen| unparsed_field("body", seen)).into_iter().collect();
        assert_eq!(app.core.create.take_request().1.unparsed, expected);
    }
}

#[tokio::test]
async fn body_without_a_credential_must_be_small() {
    let app = TestApp::new();
    app.core
        .create
        .respond_with(|| Err(error_status(ErrorCode::Unauthorized, "Missing or invalid Bearer token.", None)));
    let mut request = post("/v1/grabs");
    request.headers_mut().unwrap().remove("authorization");
    let response = app.send(request.body(Body::from(vec![b' '; 65_537])).unwrap()).await;
    assert_eq!(response.assert_error(401, "unauthorized"), "Missing or invalid Bearer token.");
    let expected = unparsed_field("body", "65537 bytes where 65536 are the most");
    assert_eq!(app.core.create.take_request().1.unparsed, [expected]);
}

#[tokio::test]
async fn document_of_a_mebibyte_is_passed_on() {
    let app = TestApp::new();
    app.core.create.respond_with(|| Err(error_status(ErrorCode::BadRequest, "`url` must be absent.", None)));
    // Three times as long as the document, as by an encoder that escapes all but ASCII.
    let escaped = "\\u00e9".repeat(1 << 19);
    app.create(&format!(r#"{{"html":"{escaped}"}}"#)).await;
    let sent = app.core.create.take_request().1;
    assert_eq!(sent.options.unwrap().html, Some("é".repeat(1 << 19)));
    assert!(sent.unparsed.is_empty());
}

#[tokio::test]
async fn asynchronous_create_returns_202() {
    let queue = ", \"async-queue\";q=50;qu=\"concurrent-requests\"";
    let cases = [
        ("/v1/grabs", Some("respond-async"), "respond-async"),
        ("/v1/grabs", Some("foo, Respond-Async; x=1, wait=5"), "respond-async"),
        ("/v1/grabs?async=true", None, ""),
        ("/v1/grabs?async=1&other=1&other=2", None, ""),
        ("/v1/grabs?async=false", Some("respond-async"), "respond-async"),
    ];
    for app in TestApp::both().await {
        app.core.create.respond_with(|| with_limit_headers(created(grab(GrabStatus::Pending, 1), false)));
        for (path, prefer, applied) in cases {
            let request = prefer.map_or(post(path), |prefer| post(path).header("prefer", prefer));
            let response = app.send(request.body(Body::from(r#"{"url":"u"}"#)).unwrap()).await;
            assert_eq!(response.status, 202, "{path} {prefer:?}");
            assert_eq!(response.json()["status"], "pending");
            assert!(response.json()["image_url"].is_null());
            assert_eq!(response.header("location"), format!("/v1/grabs/{ID}"));
            assert_eq!(response.header("retry-after"), "2");
            assert_eq!(response.header("vary"), "Prefer");
            assert_eq!(response.header("preference-applied"), applied);
            assert_eq!(response.header("ratelimit-policy"), format!("{POLICY}{queue}"));
            assert_eq!(response.header("ratelimit"), format!("{STATE}{queue}"));
            let (metadata, message) = app.core.create.take_request();
            assert_eq!(message, CreateGrabRequest { mode: CreateMode::Async.into(), ..create_request("u") });
            assert_eq!(metadata["grpc-timeout"], "27000000u");
        }
    }
}

#[tokio::test]
async fn create_is_synchronous_without_an_async_preference() {
    let app = TestApp::new();
    app.core.create.respond_with(|| with_limit_headers(created(done(), false)));
    for (path, prefer, unparsed) in [
        ("/v1/grabs?async=false", "wait=5", vec![]),
        ("/v1/grabs?async=0", "respond-async=no", vec![]),
        ("/v1/grabs?async=yes", "x", vec![unparsed_field("async", "\"yes\"")]),
        ("/v1/grabs?async=", "x", vec![unparsed_field("async", "\"\"")]),
        ("/v1/grabs?async=true&async=true", "x", vec![unparsed_field("async", "2 values")]),
    ] {
        let request = post(path).header("prefer", prefer).body(Body::from(r#"{"url":"u"}"#)).unwrap();
        let response = app.send(request).await;
        assert_eq!((response.status.as_u16(), response.header("preference-applied")), (200, ""));
        assert_eq!(response.header("ratelimit-policy"), POLICY);
        assert_eq!(app.core.create.take_request().1, CreateGrabRequest { unparsed, ..create_request("u") });
    }
}

#[tokio::test]
async fn asynchronous_create_with_a_test_key_returns_200() {
    let app = TestApp::new();
    app.core.create.respond_with(|| with_limit_headers(created(Grab { live: false, ..done() }, false)));
    let request = post("/v1/grabs").header("prefer", "respond-async").body(Body::from(r#"{"url":"u"}"#)).unwrap();
    let response = app.send(request).await;
    assert_eq!(response.status, 200);
    assert_eq!(response.header("preference-applied"), "");
    assert_eq!(response.header("ratelimit-policy"), POLICY);
}

#[tokio::test]
async fn idempotency_keys_are_forwarded_and_replays_are_marked() {
    let app = TestApp::new();
    type Case = (&'static [&'static [u8]], Option<&'static str>, Vec<Unparsed>);
    let cases: [Case; 8] = [
        (&[], None, vec![]),
        (&[b"a-1"], Some("a-1"), vec![]),
        (&[b"\"a-1\""], Some("a-1"), vec![]),
        (&[b"\""], Some("\""), vec![]),
        (&[b""], Some(""), vec![]),
        (&[b"a b"], Some("a b"), vec![]),
        (&[b"a", b"a"], None, vec![unparsed_field("Idempotency-Key", "2 header lines")]),
        (&[b"a\xe9"], None, vec![unparsed_field("Idempotency-Key", "a\u{fffd}")]),
    ];
    for (lines, key, unparsed) in cases {
        let mut request = post("/v1/grabs");
        for line in lines {
            request = request.header("idempotency-key", *line);
        }
        app.core.create.respond_with(|| with_limit_headers(created(done(), true)));
        let response = app.send(request.body(Body::from(r#"{"url":"u"}"#)).unwrap()).await;
        assert_eq!(response.header("idempotent-replayed"), "true");
        let expected = CreateGrabRequest { idempotency_key: key.map(str::to_owned), unparsed, ..create_request("u") };
        assert_eq!(app.core.create.take_request().1, expected);
    }
    app.core.create.respond_with(|| {
        let failed = Grab { failure_reason: ErrorCode::RenderBlocked.into(), ..grab(GrabStatus::Failed, 4) };
        with_limit_headers(created(failed, true))
    });
    let response = app.create(r#"{"url":"u"}"#).await;
    assert_eq!((response.status.as_u16(), response.header("idempotent-replayed")), (422, "true"));
}
