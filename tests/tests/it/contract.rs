//! The public REST contract, in process and over gRPC.

use anyhow::{Context, Result};
use grabd_tests::contract::ApiError;
use grabd_tests::harness::{REFUSED, TestApp};
use reqwest::{Method, Response};
use serde_json::{Value, json};

struct RestApi<'a> {
    app: &'a TestApp,
    base: String,
}

impl RestApi<'_> {
    async fn send(&self, method: Method, path: &str, key: Option<&str>, body: Option<&str>) -> Result<Response> {
        let mut request = self.app.client.request(method, format!("{}{path}", self.base));
        if let Some(key) = key {
            request = request.bearer_auth(key);
        }
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_owned());
        }
        Ok(request.send().await?)
    }

    /// Sends a request that must fail with the error envelope and nothing else. Returns status and code.
    async fn error(&self, method: Method, path: &str, key: Option<&str>, body: Option<&str>) -> Result<(u16, String)> {
        let response = self.send(method, path, key, body).await?;
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        anyhow::ensure!(headers.contains_key("x-request-id"), "{path}: no request id");
        anyhow::ensure!(headers["content-type"] == "application/json", "{path}: {:?}", headers["content-type"]);
        let ApiError { code, message, .. } = ApiError::read(response).await?;
        anyhow::ensure!(!message.contains("127.99."), "{path}: {message}");
        Ok((status, code))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rest_contract_holds_over_both_transports() -> Result<()> {
    let app = TestApp::start(5, &[]).await?;
    for base in [app.base(), app.base_over_grpc().await?] {
        let api = RestApi { app: &app, base };
        check_errors(&api).await?;
        check_creates(&api).await?;
        check_reads(&api).await?;
    }
    app.finish().await
}

/// A request that must be refused, with the expected status and code.
struct Row<'a> {
    method: Method,
    path: String,
    key: Option<&'a str>,
    body: Option<String>,
    status: u16,
    code: &'static str,
}

/// A create request that must be refused.
fn create<'a>(key: Option<&'a str>, body: &str, status: u16, code: &'static str) -> Row<'a> {
    Row { method: Method::POST, path: "/grabs".into(), key, body: Some(body.into()), status, code }
}

/// A read request that must be refused.
fn read<'a>(path: &str, key: Option<&'a str>, status: u16, code: &'static str) -> Row<'a> {
    Row { method: Method::GET, path: path.into(), key, body: None, status, code }
}

async fn check_errors(api: &RestApi<'_>) -> Result<()> {
    let app = api.app;
    let (live, test) = (Some(app.live()), Some(app.test()));
    let good = app.site.url("/tiny");
    let refused = format!(r#"{{"url":"http://{REFUSED}:8801/"}}"#);
    let with = |members: &str| format!(r#"{{"url":"{good}",{members}}}"#);
    let unknown = Some("sk_live_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
    let unknown_id = "01993e1c-7b1a-7000-8000-0123456789ab";
    let mut rows = vec![
        create(None, &with(r#""width":1"#), 401, "unauthorized"),
        create(unknown, "{", 401, "unauthorized"),
        create(live, "{", 400, "bad_request"),
        create(live, "[]", 400, "bad_request"),
        create(live, "{}", 400, "bad_request"),
        create(live, r#"{"url":5}"#, 400, "bad_request"),
        create(live, r#"{"url":"ftp://a.example/"}"#, 400, "bad_request"),
        create(live, &refused, 400, "ssrf_detected"),
        create(test, &refused, 400, "ssrf_detected"),
        Row { path: "/grabs?async=yes".into(), ..create(live, &with(r#""width":800"#), 400, "bad_request") },
        create(test, r#"{"url":"http://blocked.test/"}"#, 422, "render_blocked"),
        create(test, r#"{"url":"http://broken.test/"}"#, 500, "render_failed"),
        create(test, r#"{"url":"http://exhausted.test/"}"#, 402, "credits_exhausted"),
        create(test, r#"{"url":"http://busy.test/"}"#, 429, "queue_limit_exceeded"),
        read("/grabs", Some("nonsense"), 401, "unauthorized"),
        read("/usage", None, 401, "unauthorized"),
        read(&format!("/grabs/{unknown_id}"), None, 401, "unauthorized"),
        read("/grabs?status=queued", live, 400, "bad_request"),
        read("/grabs?limit=0", live, 400, "bad_request"),
        read("/grabs?limit=101", live, 400, "bad_request"),
        read("/grabs?limit=ten", live, 400, "bad_request"),
        read(&format!("/grabs?starting_after={unknown_id}"), live, 400, "bad_request"),
        read(&format!("/grabs/{unknown_id}"), live, 404, "not_found"),
        read("/grabs/not-a-uuid", live, 404, "not_found"),
        read("/pricing?provider=provider_z", None, 400, "bad_request"),
        read("/pricing?detail=some", None, 400, "bad_request"),
        read("/nothing", live, 404, "not_found"),
        Row { method: Method::PUT, ..read("/usage", live, 405, "bad_request") },
        Row { method: Method::PATCH, ..read("/grabs", live, 405, "bad_request") },
    ];
    for members in [
        r#""width":319"#,
        r#""width":1921"#,
        r#""width":"800""#,
        r#""width":null"#,
        r#""height":239"#,
        r#""height":720.5"#,
    ] {
        rows.push(create(live, &with(members), 400, "invalid_viewport"));
    }
    for members in [r#""format":"gif""#, r#""delay_ms":10001"#, r#""full_page":1"#, r#""selector":"""#] {
        rows.push(create(live, &with(members), 400, "bad_request"));
    }
    for Row { method, path, key, body, status, code } in rows {
        let seen = api.error(method.clone(), &path, key, body.as_deref()).await?;
        anyhow::ensure!(seen == (status, code.to_owned()), "{method} {path} {body:?}: {seen:?}, not {status} {code}");
    }
    Ok(())
}

async fn check_creates(api: &RestApi<'_>) -> Result<()> {
    let app = api.app;
    let body = json!({ "url": app.site.url("/tiny"), "width": 800, "height": 600, "unknown": [1] }).to_string();
    let response = api.send(Method::POST, "/grabs", Some(app.live()), Some(&body)).await?;
    assert_eq!(response.status(), 200);
    let headers = response.headers().clone();
    let grab: Value = response.json().await?;
    let members: Vec<&str> = grab.as_object().context("a grab")?.keys().map(String::as_str).collect();
    for member in [
        "id",
        "status",
        "created_at",
        "target_url",
        "image_url",
        "width",
        "height",
        "format",
        "bytes",
        "execution_ms",
        "error_message",
        "final_url",
        "http_status",
        "settled_by",
        "blocked_requests",
        "image_width",
        "image_height",
    ] {
        assert!(members.contains(&member), "{member} is missing in {members:?}");
    }
    assert_eq!((&grab["status"], &grab["width"], &grab["height"]), (&json!("done"), &json!(800), &json!(600)));
    assert_eq!((&grab["error_message"], &grab["http_status"]), (&Value::Null, &json!(200)));
    assert_eq!(grab["warnings"], json!(["unknown_option:unknown"]), "{grab}");
    assert_eq!(headers["location"].to_str()?, format!("/v1/grabs/{}", grab["id"].as_str().context("id")?));
    assert!(headers.contains_key("ratelimit") && headers.contains_key("x-ratelimit-remaining"), "{headers:?}");

    let image = app.client.get(grab["image_url"].as_str().context("image_url")?).send().await?;
    assert_eq!(image.status(), 200);
    assert_eq!(image.headers()["content-type"], "image/png");
    assert_eq!(image.headers()["x-content-type-options"], "nosniff");
    assert_eq!(image.headers()["content-security-policy"], "sandbox; default-src 'none'");
    let bytes = image.bytes().await?;
    assert_eq!(grab["bytes"], json!(bytes.len()));
    assert!(bytes.starts_with(b"\x89PNG"));

    // The same with a test key returns a placeholder with a relative URL and spends nothing.
    let response = api.send(Method::POST, "/grabs", Some(app.test()), Some(&body)).await?;
    assert_eq!(response.status(), 200);
    let placeholder: Value = response.json().await?;
    let path = placeholder["image_url"].as_str().context("image_url")?;
    assert!(path.starts_with("/i/"), "{path}");
    let image = app.client.get(format!("{}{path}", app.service.public_url())).send().await?;
    assert_eq!(image.status(), 200);
    assert_eq!(placeholder["bytes"], json!(image.bytes().await?.len()));
    Ok(())
}

async fn check_reads(api: &RestApi<'_>) -> Result<()> {
    let app = api.app;
    let get = |path: String, key: Option<String>| async move {
        let response = api.send(Method::GET, &path, key.as_deref(), None).await?;
        anyhow::ensure!(response.status() == 200, "{path}: {}", response.status());
        Ok::<_, anyhow::Error>((response.headers().clone(), response.json::<Value>().await?))
    };
    let live = Some(app.live().to_owned());
    let (_, list) = get("/grabs?status=done".into(), live.clone()).await?;
    let grabs = list["data"].as_array().context("data")?;
    assert_eq!(list["has_more"], json!(false));
    let newest = &grabs[0];
    let id = newest["id"].as_str().context("id")?;

    let (headers, one) = get(format!("/grabs/{id}"), live.clone()).await?;
    assert_eq!(&one, newest, "list and get return the same grab");
    let tag = headers["etag"].to_str()?;
    let again = app.client.get(format!("{}/grabs/{id}", api.base)).bearer_auth(app.live());
    assert_eq!(again.header("if-none-match", tag).send().await?.status(), 304);

    // The other environment of the same team does not see the grab.
    let (status, code) = api.error(Method::GET, &format!("/grabs/{id}"), Some(app.test()), None).await?;
    assert_eq!((status, code.as_str()), (404, "not_found"));

    let (_, usage) = get("/usage".into(), live).await?;
    let done = grabs.len() as i64;
    assert_eq!(usage["credits"], json!({"subscription": 0, "prepaid": 5 - done, "total": 5 - done, "held": 0}));
    assert_eq!(usage["usage"]["live_grabs_last_30d"], json!(done));
    assert_eq!((&usage["environment"], &usage["plan"]["name"]), (&json!("live"), &json!("prepaid")));
    assert!(usage["top_up"].is_string() && usage["plan"]["expires_at"].is_null());

    let (headers, pricing) = get("/pricing".into(), None).await?;
    assert_eq!(pricing["pricing"]["per_grab_usd"], json!(0.002));
    assert_eq!(pricing["pricing"]["annual"]["credits_per_year"], json!(25_000));
    assert!(headers.contains_key("etag"));
    let (_, one) = get("/pricing?provider=provider_b&detail=summary".into(), None).await?;
    let providers = one["comparison"]["providers"].as_array().context("providers")?;
    assert_eq!(providers.len(), 2, "the requested provider and grabd");
    assert!(one["links"].is_object());
    Ok(())
}
