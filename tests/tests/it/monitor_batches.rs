//! Monitors of several pages that are created with one request, over REST and gRPC.

use anyhow::{Context, Result};
use grabd_proto::v1::monitor_service_client::MonitorServiceClient;
use grabd_proto::v1::{BatchCreateMonitorsRequest, MonitorSettings};
use grabd_tests::harness::TestApp;
use serde_json::{Value, json};
use tonic::transport::Endpoint;
use tonic::{Code, Request};

/// Sends a create for several pages with the test key. Returns the status and the body.
async fn create(app: &TestApp, body: &Value) -> Result<(u16, Value)> {
    let request = app.client.post(format!("{}/monitors/batch", app.base())).bearer_auth(app.test());
    let response = request.json(body).send().await?;
    Ok((response.status().as_u16(), response.json().await?))
}

/// The names of the monitors of the test key, oldest first.
async fn names(app: &TestApp) -> Result<Vec<String>> {
    let (_, listed) = app.get("/monitors", app.test()).await?;
    let monitors = listed["data"].as_array().context("monitors")?.iter().rev();
    Ok(monitors.map(|monitor| monitor["name"].as_str().unwrap_or_default().to_owned()).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn each_page_gets_a_monitor_or_none_does() -> Result<()> {
    let app = TestApp::start_without_browser(3, &[("monitors.per_team", "3")]).await?;
    let page = |path: &str| format!("https://93.184.215.14/{path}");
    let body = json!({
        "urls": [page("a"), page("b")],
        "name": "Prices",
        "capture": { "width": 800 },
        "cron": "0 0 1 1 *",
        "notify": { "email": false },
    });
    let (status, created) = create(&app, &body).await?;
    assert_eq!(status, 201, "{created}");
    let monitors = created["monitors"].as_array().context("monitors")?;
    for (monitor, path) in monitors.iter().zip(["a", "b"]) {
        assert_eq!(monitor["capture"], json!({ "url": page(path), "width": 800 }), "{created}");
        assert_eq!(monitor["name"], json!(format!("Prices: 93.184.215.14/{path}")), "{created}");
        assert_eq!((&monitor["cron"], &monitor["notify"]["email"]), (&json!("0 0 1 1 *"), &json!(false)));
        let (_, read) = app.get(&format!("/monitors/{}", monitor["id"].as_str().context("id")?), app.test()).await?;
        assert_eq!(read, *monitor);
    }
    assert_eq!(monitors.len(), 2);

    let with = |member: &str, value: Value| {
        let mut body = json!({ "urls": [page("c")], "every": "1d" });
        body[member] = value;
        body
    };
    for (body, code, expected) in [
        (json!([]), "bad_request", "`body` must be a JSON object with `urls`"),
        (with("urls", json!([])), "bad_request", "`urls` must be an array of 1 to 50 URLs"),
        (with("urls", json!(page("c"))), "bad_request", "`urls` must be an array of 1 to 50 URLs; got"),
        (with("urls", json!([page("c"), "nothing"])), "bad_request", "`urls[1]` must be"),
        (with("urls", json!([page("c"), page("d"), page("c")])), "bad_request", "`urls[2]` must be another URL"),
        (
            with("urls", json!(["http://127.0.0.3/"])),
            "ssrf_detected",
            "The target URL is not an allowed public address. `urls[0]` must be",
        ),
        (with("capture", json!({ "url": page("c") })), "bad_request", "`capture.url` must be left out"),
        (with("capture", json!({ "width": 1 })), "invalid_viewport", "`width` must be"),
        (with("every", json!("1m")), "bad_request", "`every` must be"),
        (with("evry", json!("1d")), "bad_request", "`body` must be a JSON object with `urls`"),
        // One more is possible, two are not.
        (with("urls", json!([page("c"), page("d")])), "bad_request", "`monitors` must be at most 3"),
        (with("keep", json!(1000)), "bad_request", "`keep` must be at most 100"),
    ] {
        let (status, refused) = create(&app, &body).await?;
        let message = refused["error"]["message"].as_str().unwrap_or_default();
        assert_eq!((status, &refused["error"]["code"]), (400, &json!(code)), "{body} {refused}");
        assert!(message.starts_with(expected), "{body} {message}");
    }
    assert_eq!(names(&app).await?, ["Prices: 93.184.215.14/a", "Prices: 93.184.215.14/b"]);
    let get = app.client.get(format!("{}/monitors/batch", app.base())).bearer_auth(app.test()).send().await?;
    assert_eq!((get.status().as_u16(), get.headers()["allow"].to_str()?), (405, "POST, OPTIONS"));
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_get_their_monitors_over_grpc() -> Result<()> {
    let app = TestApp::start_without_browser(3, &[("monitors.per_team", "3")]).await?;
    let channel = Endpoint::try_from(format!("http://{}", app.service.grpc()))?.connect().await?;
    let mut service = MonitorServiceClient::new(channel);
    let request = |paths: &[&str]| -> Result<Request<BatchCreateMonitorsRequest>> {
        let urls = paths.iter().map(|path| format!("https://93.184.215.14/{path}")).collect();
        let monitor = MonitorSettings { every: Some("1d".to_owned()), ..MonitorSettings::default() };
        let mut request = Request::new(BatchCreateMonitorsRequest { urls, monitor: Some(monitor) });
        request.metadata_mut().insert("authorization", format!("Bearer {}", app.test()).parse()?);
        Ok(request)
    };
    let created = service.batch_create_monitors(request(&["a", "b"])?).await?.into_inner();
    let urls: Vec<Option<&str>> =
        created.monitors.iter().map(|monitor| monitor.capture.as_ref()?.url.as_deref()).collect();
    assert_eq!(urls, [Some("https://93.184.215.14/a"), Some("https://93.184.215.14/b")]);
    // Their first runs do not all begin at once, but soon.
    for monitor in &created.monitors {
        let (at, due) = (monitor.created_at.as_ref().context("created")?, monitor.next_run_at.as_ref().context("due")?);
        assert!((0..=300).contains(&(due.seconds - at.seconds)), "{monitor:?}");
    }
    for (paths, expected) in [
        (&["c", "d"][..], "`monitors` must be at most 3"),
        (&["c", "c"], "`urls[1]` must be another"),
        (&[], "`urls` must"),
    ] {
        let refused = service.batch_create_monitors(request(paths)?).await.err().context("refused")?;
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused:?}");
        assert!(refused.message().starts_with(expected), "{refused:?}");
    }
    assert_eq!(names(&app).await?, ["93.184.215.14/a", "93.184.215.14/b"]);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn each_page_counts_in_the_rate_limit() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[("limits.requests_per_minute", "5")]).await?;
    let send = async |paths: &[&str]| {
        let urls: Vec<String> = paths.iter().map(|path| format!("https://93.184.215.14/{path}")).collect();
        let request = app.client.post(format!("{}/monitors/batch", app.base())).bearer_auth(app.test());
        request.json(&json!({ "urls": urls, "every": "1d" })).send().await
    };
    let created = send(&["a", "b"]).await?;
    assert_eq!(created.status(), 201);
    let state = created.headers()["ratelimit"].to_str()?;
    assert!(state.starts_with("\"default\";r=3;"), "{state}");
    // The request itself counts, and its pages do not: a part of them would be of no use.
    let refused = send(&["c", "d", "e", "f", "g"]).await?;
    assert_eq!(refused.status(), 429);
    let wait: u64 = refused.headers()["retry-after"].to_str()?.parse()?;
    assert!((13..=24).contains(&wait), "two more, one each 12 s: {wait}");
    assert_eq!(send(&["c", "d"]).await?.status(), 201);
    app.finish().await
}
