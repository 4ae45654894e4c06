//! `POST /v1/grabs`.

use axum::body::Body;
use grabd_proto::v1::{
    CreateGrabRequest, CreateGrabResponse, CreateMode, ErrorCode, Grab, GrabStatus, ImageFormat, SettledBy, Unparsed,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::support::{House, POLICY, STATE, fault, get, grab, limited, post};

const ID: &str = "01990000-0000-7000-8000-000000000001";

fn created(grab: Grab, replayed: bool) -> CreateGrabResponse {
    CreateGrabResponse { grab: Some(grab), replayed }
}

fn done() -> Grab {
    Grab {
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
        ..grab(GrabStatus::Done, 4)
    }
}

fn asks(url: &str) -> CreateGrabRequest {
    CreateGrabRequest { url: Some(url.to_owned()), mode: CreateMode::Sync.into(), ..CreateGrabRequest::default() }
}

fn wrong(field: &str, seen: &str) -> Unparsed {
    Unparsed { field: field.to_owned(), seen: seen.to_owned() }
}

#[tokio::test]
async fn a_grab_that_is_done_is_shown_with_every_member_in_order() {
    for house in House::both().await {
        house.core.create.answers(|| limited(created(done(), false)));
        let reply = house.create(r#"{"url":"https://example.com/"}"#).await;
        assert_eq!(reply.status, 200);
        assert_eq!(
            reply.text(),
            concat!(
                r#"{"id":"01990000-0000-7000-8000-000000000001","status":"done","created_at":"2026-11-20T20:32:54.120Z","#,
                r#""target_url":"https://example.com/","image_url":"https://img.grabd.example/Zx9.png","width":1280,"#,
                r#""height":720,"format":"png","bytes":48213,"execution_ms":1830,"error_message":null,"#,
                r#""final_url":"https://example.com/home","http_status":200,"settled_by":"quiet","blocked_requests":0,"#,
                r#""image_width":1280,"image_height":720,"truncated":false}"#
            )
        );
        assert_eq!(reply.header("content-type"), "application/json");
        assert_eq!(reply.header("location"), format!("/v1/grabs/{ID}"));
        assert_eq!(reply.header("cache-control"), "private, no-store");
        assert_eq!(reply.header("ratelimit-policy"), POLICY);
        assert_eq!(reply.header("ratelimit"), STATE);
        for absent in ["retry-after", "preference-applied", "idempotent-replayed", "vary"] {
            assert_eq!(reply.header(absent), "", "{absent}");
        }
        assert_eq!(house.core.create.asked_once().1, asks("https://example.com/"));
    }
}

#[tokio::test]
async fn members_are_read_by_their_types() {
    let house = House::new();
    house.core.create.answers(|| limited(created(done(), false)));
    let whole = CreateGrabRequest {
        width: Some(800),
        height: Some(600),
        format: ImageFormat::Webp.into(),
        full_page: Some(true),
        delay_ms: Some(250),
        selector: Some("#a".to_owned()),
        ..asks("u")
    };
    let unparsed = |unparsed: Vec<Unparsed>| CreateGrabRequest { url: None, unparsed, ..asks("") };
    let besides = |unparsed: Vec<Unparsed>| CreateGrabRequest { unparsed, ..asks("u") };
    let cases = [
        (
            r##"{"url":"u","width":800,"height":600.0,"format":"webp","full_page":true,"delay_ms":2.5e2,"selector":"#a"}"##,
            whole,
        ),
        ("{}", unparsed(vec![])),
        (r#"{"url":"u","selector":null}"#, asks("u")),
        (r#"{"url":"u","Width":"x","other":{"a":[null]},"async":"x"}"#, asks("u")),
        (
            r#"{"url":"u","width":0,"delay_ms":-1}"#,
            CreateGrabRequest { width: Some(0), delay_ms: Some(-1), ..asks("u") },
        ),
        (r#"{"url":"u","selector":""}"#, CreateGrabRequest { selector: Some(String::new()), ..asks("u") }),
        (r#"{"url":5}"#, unparsed(vec![wrong("url", "5")])),
        (r#"{"url":null}"#, unparsed(vec![wrong("url", "null")])),
        (r#"{"url":"\ud800"}"#, unparsed(vec![wrong("url", r#""\ud800""#)])),
        (r#"{"url":"u","width":"abc"}"#, besides(vec![wrong("width", "\"abc\"")])),
        (r#"{"url":"u","width":null,"height":null}"#, besides(vec![wrong("width", "null"), wrong("height", "null")])),
        (r#"{"url":"u","width":1.5}"#, besides(vec![wrong("width", "1.5")])),
        (r#"{"url":"u","width":1e400}"#, besides(vec![wrong("width", "1e400")])),
        (r#"{"url":"u","height":9223372036854775808}"#, besides(vec![wrong("height", "9223372036854775808")])),
        (r#"{"url":"u","height":{"a": 1}}"#, besides(vec![wrong("height", "{\"a\": 1}")])),
        (r#"{"url":"u","format":7}"#, besides(vec![wrong("format", "7")])),
        (r#"{"url":"u","format":"gif"}"#, besides(vec![wrong("format", "\"gif\"")])),
        (r#"{"url":"u","format":null}"#, besides(vec![wrong("format", "null")])),
        (r#"{"url":"u","full_page":"yes"}"#, besides(vec![wrong("full_page", "\"yes\"")])),
        (r#"{"url":"u","full_page":1}"#, besides(vec![wrong("full_page", "1")])),
        (r#"{"url":"u","delay_ms":"1"}"#, besides(vec![wrong("delay_ms", "\"1\"")])),
        (r#"{"url":"u","delay_ms":null}"#, besides(vec![wrong("delay_ms", "null")])),
        (r#"{"url":"u","selector":5}"#, besides(vec![wrong("selector", "5")])),
        (r#"{"url":"u","selector":[]}"#, besides(vec![wrong("selector", "[]")])),
        ("", unparsed(vec![wrong("body", "an empty body")])),
        ("[]", unparsed(vec![wrong("body", "[]")])),
        (r#"{"url" "u"}"#, unparsed(vec![wrong("body", "malformed JSON at line 1 column 8")])),
        (r#"{"url":"u","url":"u"}"#, unparsed(vec![wrong("body", "the member \"url\" twice")])),
        (r#"{"url":"u","x":{"y":1,"y":1}}"#, unparsed(vec![wrong("body", "the member \"y\" twice")])),
        (r#"{"url":"u"} x"#, unparsed(vec![wrong("body", "malformed JSON at line 1 column 13")])),
    ];
    for (body, expected) in cases {
        let reply = house.create(body).await;
        assert_eq!(reply.status, 200, "the face must judge nothing itself: {body}");
        assert_eq!(house.core.create.asked_once().1, expected, "{body}");
    }
    let long = "x".repeat(1000);
    house.create(&format!(r#"{{"url":"u","width":"{long}"}}"#)).await;
    assert_eq!(house.core.create.asked_once().1.unparsed[0].seen.len(), 200);
}

#[tokio::test]
async fn bodies_that_are_not_json_are_told_to_the_core() {
    let house = House::new();
    house.core.create.answers(|| Err(fault(ErrorCode::BadRequest, "`body` must be a JSON object.", None)));
    let json = r#"{"url":"u"}"#.as_bytes().to_vec();
    let cases = [
        (Some("text/plain"), json.clone(), Some("text/plain"), ""),
        (None, json.clone(), Some("no Content-Type"), ""),
        (Some("application/json; charset=utf-8"), json, None, ""),
        (Some("application/json"), vec![b' '; 65_537], Some("65537 bytes where 65536 are the most"), "close"),
        (Some("text/plain"), vec![b' '; 70_000], Some("70000 bytes where 65536 are the most"), "close"),
        (Some("application/json"), b"{\"url\":\"\xff\"}".to_vec(), Some("bytes that are not UTF-8 at 8"), ""),
    ];
    for (media_type, body, seen, connection) in cases {
        let mut request = get("/v1/grabs").method("POST");
        if let Some(media_type) = media_type {
            request = request.header("content-type", media_type);
        }
        let reply = house.send(request.body(Body::from(body)).unwrap()).await;
        assert_eq!(reply.refused(400, "bad_request"), "`body` must be a JSON object.");
        assert_eq!(reply.header("connection"), connection, "{media_type:?}");
        let expected: Vec<Unparsed> = seen.map(|seen| wrong("body", seen)).into_iter().collect();
        assert_eq!(house.core.create.asked_once().1.unparsed, expected);
    }
}

#[tokio::test]
async fn an_oversized_body_is_answered_unread_and_its_connection_closed() {
    let house = House::new();
    house.core.create.answers(|| Err(fault(ErrorCode::Unauthorized, "Missing or invalid Bearer token.", None)));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut server = JoinSet::new();
    let router = house.router.clone().into_make_service_with_connect_info::<std::net::SocketAddr>();
    server.spawn(axum::serve(listener, router).into_future());

    let mut client = TcpStream::connect(address).await.unwrap();
    let head =
        "POST /v1/grabs HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 9000000\r\n\r\n{";
    client.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 401 Unauthorized\r\n"), "{answer}");
    assert!(answer.contains("connection: close\r\n"), "{answer}");
    assert_eq!(house.core.create.asked_once().1.unparsed, [wrong("body", "9000000 bytes where 65536 are the most")]);
}

#[tokio::test]
async fn asynchronous_grabs_are_accepted() {
    let queue = ", \"async-queue\";q=50;qu=\"concurrent-requests\"";
    let cases = [
        ("/v1/grabs", Some("respond-async"), "respond-async"),
        ("/v1/grabs", Some("foo, Respond-Async; x=1, wait=5"), "respond-async"),
        ("/v1/grabs?async=true", None, ""),
        ("/v1/grabs?async=1&other=1&other=2", None, ""),
        ("/v1/grabs?async=false", Some("respond-async"), "respond-async"),
    ];
    for house in House::both().await {
        house.core.create.answers(|| limited(created(grab(GrabStatus::Pending, 1), false)));
        for (path, prefer, applied) in cases {
            let request = prefer.map_or(post(path), |prefer| post(path).header("prefer", prefer));
            let reply = house.send(request.body(Body::from(r#"{"url":"u"}"#)).unwrap()).await;
            assert_eq!(reply.status, 202, "{path} {prefer:?}");
            assert_eq!(reply.json()["status"], "pending");
            assert!(reply.json()["image_url"].is_null());
            assert_eq!(reply.header("location"), format!("/v1/grabs/{ID}"));
            assert_eq!(reply.header("retry-after"), "2");
            assert_eq!(reply.header("vary"), "Prefer");
            assert_eq!(reply.header("preference-applied"), applied);
            assert_eq!(reply.header("ratelimit-policy"), format!("{POLICY}{queue}"));
            assert_eq!(reply.header("ratelimit"), format!("{STATE}{queue}"));
            let (metadata, message) = house.core.create.asked_once();
            assert_eq!(message, CreateGrabRequest { mode: CreateMode::Async.into(), ..asks("u") });
            assert_eq!(metadata["grpc-timeout"], "27000000u");
        }
    }
}

#[tokio::test]
async fn synchronous_grabs_are_asked_for_otherwise() {
    let house = House::new();
    house.core.create.answers(|| limited(created(done(), false)));
    for (path, prefer, unparsed) in [
        ("/v1/grabs?async=false", "wait=5", vec![]),
        ("/v1/grabs?async=0", "respond-async=no", vec![]),
        ("/v1/grabs?async=yes", "x", vec![wrong("async", "\"yes\"")]),
        ("/v1/grabs?async=", "x", vec![wrong("async", "\"\"")]),
        ("/v1/grabs?async=true&async=true", "x", vec![wrong("async", "2 values")]),
    ] {
        let request = post(path).header("prefer", prefer).body(Body::from(r#"{"url":"u"}"#)).unwrap();
        let reply = house.send(request).await;
        assert_eq!((reply.status.as_u16(), reply.header("preference-applied")), (200, ""));
        assert_eq!(reply.header("ratelimit-policy"), POLICY);
        assert_eq!(house.core.create.asked_once().1, CreateGrabRequest { unparsed, ..asks("u") });
    }
}

#[tokio::test]
async fn test_keys_never_queue() {
    let house = House::new();
    house.core.create.answers(|| limited(created(Grab { live: false, ..done() }, false)));
    let request = post("/v1/grabs").header("prefer", "respond-async").body(Body::from(r#"{"url":"u"}"#)).unwrap();
    let reply = house.send(request).await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("preference-applied"), "");
    assert_eq!(reply.header("ratelimit-policy"), POLICY);
}

#[tokio::test]
async fn idempotency_keys_go_on_and_replays_are_told() {
    let house = House::new();
    type Case = (&'static [&'static [u8]], Option<&'static str>, Vec<Unparsed>);
    let cases: [Case; 8] = [
        (&[], None, vec![]),
        (&[b"a-1"], Some("a-1"), vec![]),
        (&[b"\"a-1\""], Some("a-1"), vec![]),
        (&[b"\""], Some("\""), vec![]),
        (&[b""], Some(""), vec![]),
        (&[b"a b"], Some("a b"), vec![]),
        (&[b"a", b"a"], None, vec![wrong("Idempotency-Key", "2 header lines")]),
        (&[b"a\xe9"], None, vec![wrong("Idempotency-Key", "a\u{fffd}")]),
    ];
    for (lines, key, unparsed) in cases {
        let mut request = post("/v1/grabs");
        for line in lines {
            request = request.header("idempotency-key", *line);
        }
        house.core.create.answers(|| limited(created(done(), true)));
        let reply = house.send(request.body(Body::from(r#"{"url":"u"}"#)).unwrap()).await;
        assert_eq!(reply.header("idempotent-replayed"), "true");
        let expected = CreateGrabRequest { idempotency_key: key.map(str::to_owned), unparsed, ..asks("u") };
        assert_eq!(house.core.create.asked_once().1, expected);
    }
    house.core.create.answers(|| {
        let failed = Grab { failure_reason: ErrorCode::RenderBlocked.into(), ..grab(GrabStatus::Failed, 4) };
        limited(created(failed, true))
    });
    let reply = house.create(r#"{"url":"u"}"#).await;
    assert_eq!((reply.status.as_u16(), reply.header("idempotent-replayed")), (422, "true"));
}
