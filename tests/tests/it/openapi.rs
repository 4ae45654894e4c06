//! Real responses match the published OpenAPI document.

use anyhow::{Context, Result};
use grabd_tests::harness::TestApp;
use reqwest::Method;
use serde_json::{Value, json};

use crate::{monitors, sites};

/// Calls operations and validates the responses against the OpenAPI document.
struct DocumentedApi<'a> {
    app: &'a TestApp,
    document: Value,
}

impl DocumentedApi<'_> {
    /// Calls an operation and validates status, content type, headers and body of the response.
    async fn call(&self, method: Method, template: &str, path: &str, key: &str, body: Option<&Value>) -> Result<Value> {
        let mut request = self.app.client.request(method.clone(), format!("{}{path}", self.app.base()));
        if !key.is_empty() {
            request = request.bearer_auth(key);
        }
        if let Some(body) = body {
            request = request.json(body);
        }
        let response = request.send().await?;
        let (status, headers) = (response.status().as_u16().to_string(), response.headers().clone());
        let operation = &self.document["paths"][template][method.as_str().to_lowercase()];
        let described = &operation["responses"][&status];
        anyhow::ensure!(described.is_object(), "{method} {template} returned {status}, which is not documented");
        // Optional headers are documented too, so only headers of all responses are required here.
        for name in ["X-Request-Id", "RateLimit", "RateLimit-Policy"] {
            anyhow::ensure!(described["headers"][name].is_object(), "{method} {template} {status}: {name}");
            anyhow::ensure!(
                headers.contains_key(name) || status == "401",
                "{method} {template} {status} has no {name}"
            );
        }
        let bytes = response.bytes().await?;
        if bytes.is_empty() {
            anyhow::ensure!(described["content"].is_null(), "{method} {template} {status}: the body is missing");
            return Ok(Value::Null);
        }
        let media_type = headers["content-type"].to_str()?;
        let content = &described["content"][media_type];
        anyhow::ensure!(content.is_object(), "{method} {template} {status}: {media_type}");
        let answer: Value = serde_json::from_slice(&bytes)?;
        // The components are needed to resolve references.
        let mut schema = content["schema"].clone();
        schema["components"] = self.document["components"].clone();
        let validator = jsonschema::validator_for(&schema).context("a schema that can be used")?;
        let problems: Vec<String> = validator.iter_errors(&answer).map(|error| error.to_string()).collect();
        anyhow::ensure!(problems.is_empty(), "{method} {template} {status}: {problems:?} in {answer}");
        Ok(answer)
    }
}

/// Monitors before and after their first run.
async fn monitors_match(api: &DocumentedApi<'_>, key: &str) -> Result<()> {
    let body =
        json!({ "capture": { "url": "https://93.184.215.14/" }, "cron": "0 9 * * *", "compare": { "status": true } });
    let created = api.call(Method::POST, "/monitors", "/monitors", key, Some(&body)).await?;
    let cron = format!("/monitors/{}", created["id"].as_str().context("id")?);
    let body = json!({ "capture": { "url": "https://93.184.215.14/" }, "every": "1d" });
    let created = api.call(Method::POST, "/monitors", "/monitors", key, Some(&body)).await?;
    let path = format!("/monitors/{}", created["id"].as_str().context("id")?);
    let batch = json!({ "urls": ["https://93.184.215.14/a"], "every": "1d" });
    api.call(Method::POST, "/monitors/batch", "/monitors/batch", key, Some(&batch)).await?;
    api.call(Method::POST, "/monitors/batch", "/monitors/batch", key, Some(&json!({}))).await?;
    monitors::ended(api.app, key, &path, None).await?;
    let (runs, accept) = (format!("{path}/runs"), format!("{path}/accept"));
    for (template, path) in [
        ("/monitors", "/monitors?limit=1"),
        ("/monitors", "/monitors?limit=0"),
        ("/monitors/{id}", path.as_str()),
        ("/monitors/{id}", cron.as_str()),
        ("/monitors/{id}", "/monitors/none"),
        ("/monitors/{id}/runs", runs.as_str()),
    ] {
        api.call(Method::GET, template, path, key, None).await?;
    }
    let accepted = api.call(Method::POST, "/monitors/{id}/accept", &accept, key, None).await?;
    assert_eq!(accepted["baseline_grab_id"], accepted["last_run"]["grab_id"]);
    let feed = format!("{path}/feed");
    api.call(Method::POST, "/monitors/{id}/feed", &feed, key, None).await?;
    api.call(Method::DELETE, "/monitors/{id}/feed", &feed, key, None).await?;
    api.call(Method::PATCH, "/monitors/{id}", &path, key, Some(&json!({ "paused": true }))).await?;
    api.call(Method::POST, "/monitors", "/monitors", key, Some(&json!({}))).await?;
    api.call(Method::DELETE, "/monitors/{id}", &path, key, None).await?;
    api.call(Method::DELETE, "/monitors/{id}", &path, key, None).await?;
    Ok(())
}

/// Site jobs while they run and after their end.
async fn sites_match(api: &DocumentedApi<'_>, key: &str) -> Result<()> {
    let body = json!({ "url": "https://93.184.215.14/", "requests_per_minute": 120, "include": ["/a/*"] });
    let created = api.call(Method::POST, "/sites", "/sites", key, Some(&body)).await?;
    let path = format!("/sites/{}", created["id"].as_str().context("id")?);
    sites::finished(api.app, key, &path).await?;
    let body = json!({ "sitemap": "https://93.184.215.14/sitemap.xml", "capture": { "width": 640 } });
    let created = api.call(Method::POST, "/sites", "/sites", key, Some(&body)).await?;
    let second = format!("/sites/{}", created["id"].as_str().context("id")?);
    let (pages, unknown) = (format!("{path}/pages"), format!("{path}/pages?starting_after=x"));
    for (template, path) in [
        ("/sites", "/sites?limit=1"),
        ("/sites", "/sites?limit=0"),
        ("/sites/{id}", path.as_str()),
        ("/sites/{id}", second.as_str()),
        ("/sites/{id}", "/sites/none"),
        ("/sites/{id}/pages", pages.as_str()),
        ("/sites/{id}/pages", unknown.as_str()),
    ] {
        api.call(Method::GET, template, path, key, None).await?;
    }
    let cancel = format!("{second}/cancel");
    let canceled = api.call(Method::POST, "/sites/{id}/cancel", &cancel, key, None).await?;
    assert_ne!(canceled["state"], "discovering");
    api.call(Method::POST, "/sites", "/sites", key, Some(&json!({}))).await?;
    api.call(Method::DELETE, "/sites/{id}", &path, key, None).await?;
    api.call(Method::DELETE, "/sites/{id}", &path, key, None).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn responses_match_the_openapi_document() -> Result<()> {
    let app = TestApp::start(2, &[]).await?;
    let document = app.client.get(format!("{}/openapi.json", app.base())).send().await?.json().await?;
    let api = DocumentedApi { app: &app, document };
    let (live, test) = (app.live(), app.test());
    let target = |url: &str| json!({ "url": url });
    let (get, post) = (Method::GET, Method::POST);

    let tiny = target(&app.site.url("/tiny"));
    let mut with_files = tiny.clone();
    with_files["also"] = json!(["text", "links"]);
    let grab = api.call(post.clone(), "/grabs", "/grabs", live, Some(&with_files)).await?;
    assert_eq!(grab["files"].as_array().map(Vec::len), Some(2));
    let path = format!("/grabs/{}", grab["id"].as_str().context("id")?);
    let queued = api.call(post.clone(), "/grabs", "/grabs?async=true", live, Some(&tiny)).await?;
    assert_eq!(queued["status"], "pending");
    for (key, url) in [
        (test, "https://example.com/"),
        (test, "http://blocked.test/"),
        (test, "http://broken.test/"),
        (test, "http://exhausted.test/"),
        (test, "http://busy.test/"),
        (live, "http://10.0.0.1/"),
        (live, "nonsense"),
        ("", "https://example.com/"),
    ] {
        api.call(post.clone(), "/grabs", "/grabs", key, Some(&target(url))).await?;
    }
    let [text, markdown, other] = ["text", "markdown", "pdf"].map(|format| format!("{path}/read?format={format}"));
    let narrow = json!({ "url": "https://example.com/", "width": 1 });
    api.call(post.clone(), "/grabs", "/grabs", live, Some(&narrow)).await?;
    for (template, path, key) in [
        ("/grabs", "/grabs?limit=1", live),
        ("/grabs", "/grabs", test),
        ("/grabs", "/grabs?status=lost", live),
        ("/grabs/{id}", &path, live),
        ("/grabs/{id}", &path, test),
        ("/grabs/{id}/read", &text, live),
        ("/grabs/{id}/read", &markdown, live),
        ("/grabs/{id}/read", &other, live),
        ("/grabs/{id}/read", &text, test),
        ("/usage", "/usage", live),
        ("/usage", "/usage", test),
        ("/usage", "/usage", ""),
        ("/pricing", "/pricing", ""),
        ("/pricing", "/pricing?detail=summary&provider=provider_a", ""),
        ("/pricing", "/pricing?detail=none", ""),
        ("/openapi.json", "/openapi.json", ""),
    ] {
        api.call(get.clone(), template, path, key, None).await?;
    }
    monitors_match(&api, test).await?;
    sites_match(&api, test).await?;
    api.call(Method::DELETE, "/grabs/{id}", &path, live, None).await?;
    api.call(Method::DELETE, "/grabs/{id}", &path, test, None).await?;
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn common_headers_are_set_outside_the_api() -> Result<()> {
    let contact = "mailto:security@grabd.example";
    let app = TestApp::start(0, &[("http.security_contact", contact)]).await?;
    let origin = app.service.public_url();
    let request = app.client.post(format!("{}/grabs", app.base())).bearer_auth(app.test());
    let grab: Value = request.json(&json!({ "url": "https://example.com/" })).send().await?.json().await?;
    let image = grab["image_url"].as_str().context("image_url")?;
    let send = |method: Method, path: &str| app.client.request(method, format!("{origin}{path}"));

    for (path, open) in [("/healthz", false), ("/readyz", false), ("/.well-known/security.txt", true), (image, true)] {
        let options = send(Method::OPTIONS, path).send().await?;
        assert_eq!((options.status().as_u16(), &options.headers()["allow"]), (204, &"GET, HEAD, OPTIONS".parse()?));
        let other = send(Method::POST, path).send().await?;
        assert_eq!((other.status().as_u16(), &other.headers()["allow"]), (405, &"GET, HEAD, OPTIONS".parse()?));
        assert_eq!(other.headers()["link"].to_str()?, format!("<{origin}/docs/api#bad_request>; rel=\"help\""));
        let head = send(Method::HEAD, path).header("x-request-id", "mine").send().await?;
        assert_eq!((head.status().as_u16(), &head.headers()["x-request-id"]), (200, &"mine".parse()?), "{path}");
        assert_eq!(head.headers()["x-content-type-options"], "nosniff");
        for answer in [&options, &other, &head] {
            assert_eq!(answer.headers().contains_key("access-control-allow-origin"), open, "{path}");
        }
    }
    let security = send(Method::GET, "/.well-known/security.txt").send().await?.text().await?;
    assert!(security.starts_with(&format!("Contact: {contact}\nExpires: 2")), "{security}");

    let whole = send(Method::GET, image).send().await?;
    let tag = whole.headers()["etag"].clone();
    let whole = whole.bytes().await?;
    let part = send(Method::GET, image).header("range", "bytes=2-5").header("if-range", &tag).send().await?;
    assert_eq!((part.status().as_u16(), part.bytes().await?), (206, whole.slice(2..6)));
    let changed = send(Method::GET, image).header("range", "bytes=2-5").header("if-range", "\"x\"").send().await?;
    assert_eq!((changed.status().as_u16(), changed.bytes().await?), (200, whole.clone()));
    let same = send(Method::GET, image).header("if-none-match", &tag).send().await?;
    assert_eq!((same.status().as_u16(), &same.headers()["etag"]), (304, &tag));
    assert!(!same.headers().contains_key("content-type"));
    let beyond = send(Method::GET, image).header("range", "bytes=9999999-").send().await?;
    assert_eq!((beyond.status().as_u16(), &beyond.headers()["cache-control"]), (416, &"no-store".parse()?));
    assert_eq!(beyond.headers()["content-range"].to_str()?, format!("bytes */{}", whole.len()));
    app.finish().await
}

/// Clients that are generated from the document send the defaults of its schemas.
#[tokio::test(flavor = "multi_thread")]
async fn defaults_of_the_document_change_nothing_when_they_are_sent() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[]).await?;
    let document: Value = app.client.get(format!("{}/openapi.json", app.base())).send().await?.json().await?;
    let properties = &document["components"]["schemas"]["CreateGrabRequest"]["properties"];
    let properties = properties.as_object().context("the options")?;
    let defaults = properties.iter().filter_map(|(name, schema)| Some((name.clone(), schema.get("default")?.clone())));
    let defaults: serde_json::Map<String, Value> = defaults.collect();
    anyhow::ensure!(defaults.len() > 10, "{defaults:?}");
    let create = async |options: &Value, with: &serde_json::Map<String, Value>| -> Result<Value> {
        let mut body = options.as_object().context("options")?.clone();
        for (name, value) in with {
            body.entry(name.clone()).or_insert_with(|| value.clone());
        }
        let request = app.client.post(format!("{}/grabs", app.base())).bearer_auth(app.test()).json(&body);
        let (mut grab, none) = (request.send().await?.json::<Value>().await?, Value::Null);
        for name in ["id", "created_at", "image_url", "execution_ms"] {
            grab[name] = none.clone();
        }
        for file in grab["files"].as_array_mut().into_iter().flatten() {
            file["url"] = none.clone();
        }
        anyhow::ensure!(grab["status"] == "done", "{body:?}: {grab}");
        Ok(grab)
    };
    let url = "https://example.com/";
    for options in [
        json!({ "url": url }),
        json!({ "url": url, "device": "phone" }),
        json!({ "url": url, "device": "tablet", "full_page": true }),
        json!({ "url": url, "device": "iphone-15", "vision": "protanopia", "freeze_all": true, "block": ["chats"] }),
        json!({ "url": url, "selector": "main" }),
        json!({ "url": url, "format": "webp", "quality": 50 }),
        json!({ "url": url, "javascript": false }),
        json!({ "url": url, "also": ["pdf"], "pdf": { "format": "a5" } }),
        json!({ "html": "<p>x</p>" }),
    ] {
        let alone = create(&options, &serde_json::Map::new()).await?;
        assert_eq!(create(&options, &defaults).await?, alone, "{options}");
    }
    app.finish().await
}
