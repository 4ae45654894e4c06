//! `max_age`: creates that an earlier grab answers, over every API.

use anyhow::{Context, Result};
use grabd_proto::v1::grab_service_client::GrabServiceClient;
use grabd_proto::v1::{CaptureOptions, CreateGrabRequest};
use grabd_tests::agent::{Agent, MODERN};
use grabd_tests::harness::TestApp;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};
use tonic::Request;
use tonic::transport::Endpoint;

/// Sends a create. Returns status, headers and body.
async fn create(app: &TestApp, key: &str, query: &str, once: &str, body: &Value) -> Result<(u16, HeaderMap, Value)> {
    let mut request = app.client.post(format!("{}/grabs{query}", app.base())).bearer_auth(key).json(body);
    if !once.is_empty() {
        request = request.header("idempotency-key", once);
    }
    let response = request.send().await?;
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    Ok((status, headers, response.json().await?))
}

async fn credits(app: &TestApp) -> Result<(Value, Value)> {
    let (_, usage) = app.get("/usage", app.live()).await?;
    Ok((usage["credits"]["total"].clone(), usage["credits"]["held"].clone()))
}

#[tokio::test(flavor = "multi_thread")]
async fn earlier_grab_answers_free_over_every_api() -> Result<()> {
    let app = TestApp::start(1, &[]).await?;
    let url = app.site.url("/tiny");
    let page = json!({ "url": url, "width": 640, "max_age": 3600 });
    let (status, _, first) = create(&app, app.live(), "", "", &page).await?;
    assert_eq!((status, &first["cached"]), (200, &Value::Null), "{first}");
    assert_eq!(credits(&app).await?, (json!(0), json!(0)));
    let mut expected = first.clone();
    expected["cached"] = json!(true);

    for query in ["", "?async=true"] {
        let (status, headers, again) = create(&app, app.live(), query, "", &page).await?;
        assert_eq!((status, &again), (200, &expected), "{query}");
        let location = format!("/v1/grabs/{}", first["id"].as_str().unwrap_or_default());
        assert_eq!(headers.get("location").and_then(|value| value.to_str().ok()), Some(&*location));
    }
    // The same key repeats the answer; several keys may have the same.
    for (once, query) in [("a", ""), ("b", "?async=true")] {
        for is_replay in [false, true] {
            let (status, headers, again) = create(&app, app.live(), query, once, &page).await?;
            assert_eq!((status, &again), (200, &expected), "{once}");
            assert_eq!(headers.contains_key("idempotent-replayed"), is_replay, "{once}");
        }
    }
    let other = json!({ "url": url, "width": 640, "max_age": 3601 });
    let (status, _, mismatch) = create(&app, app.live(), "", "a", &other).await?;
    assert_eq!((status, &mismatch["error"]["code"]), (400, &json!("idempotency_mismatch")));

    for asynchronous in [false, true] {
        let mut arguments = page.clone();
        arguments["async"] = json!(asynchronous);
        let called = Agent::new(&app, app.live(), MODERN).call("create_grab", arguments).await?;
        let grab = called.structured()?;
        assert_eq!((&grab["id"], &grab["cached"]), (&first["id"], &json!(true)), "{grab}");
    }

    let channel = Endpoint::try_from(format!("http://{}", app.service.grpc()))?.connect().await?;
    let options =
        CaptureOptions { url: Some(url.clone()), width: Some(640), max_age: Some(60), ..CaptureOptions::default() };
    let message = CreateGrabRequest { options: Some(options), ..CreateGrabRequest::default() };
    let mut request = Request::new(message);
    request.metadata_mut().insert("authorization", format!("Bearer {}", app.live()).parse()?);
    let grab = GrabServiceClient::new(channel).create_grab(request).await?.into_inner().grab.context("a grab")?;
    assert_eq!((Some(grab.id.as_str()), grab.cached), (first["id"].as_str(), Some(true)));

    // The grab itself is as it was.
    let path = format!("/grabs/{}", first["id"].as_str().context("an id")?);
    assert_eq!(app.get(&path, app.live()).await?.1, first);
    let (_, list) = app.get("/grabs", app.live()).await?;
    assert_eq!(list["data"].as_array().map(Vec::len), Some(1));
    assert_eq!(credits(&app).await?, (json!(0), json!(0)));
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn other_requests_get_a_new_grab() -> Result<()> {
    let app = TestApp::start(9, &[]).await?;
    let url = app.site.url("/tiny");
    let id = |grab: &Value| grab["id"].as_str().unwrap_or_default().to_owned();
    let (_, _, first) = create(&app, app.live(), "", "", &json!({ "url": url })).await?;
    let mut seen = vec![id(&first)];
    for other in [
        json!({ "url": url }),
        json!({ "url": url, "max_age": 0 }),
        json!({ "url": url, "max_age": 60, "width": 1279 }),
        json!({ "url": app.site.url("/tiny?x"), "max_age": 60 }),
        // Nothing that stays is derived from secrets.
        json!({ "url": url, "max_age": 60, "headers": { "X-A": "1" } }),
        json!({ "url": url, "max_age": 60, "headers": { "X-A": "1" } }),
    ] {
        let (status, _, grab) = create(&app, app.live(), "", "", &other).await?;
        assert_eq!((status, &grab["cached"]), (200, &Value::Null), "{other}");
        assert!(!seen.contains(&id(&grab)), "{other}");
        seen.push(id(&grab));
    }
    assert_eq!(credits(&app).await?, (json!(2), json!(0)));

    // Placeholders are of another environment.
    let aged = json!({ "url": url, "max_age": 60 });
    let (_, _, placeholder) = create(&app, app.test(), "", "", &aged).await?;
    assert_eq!(placeholder["cached"], Value::Null);
    let (_, _, again) = create(&app, app.test(), "", "", &aged).await?;
    assert_eq!((id(&again), &again["cached"]), (id(&placeholder), &json!(true)));

    // A deleted image answers nothing, and the one before it is found.
    let (_, _, found) = create(&app, app.live(), "", "", &aged).await?;
    assert_eq!(found["cached"], json!(true));
    let deleted = app.client.delete(format!("{}/grabs/{}", app.base(), id(&found))).bearer_auth(app.live());
    assert_eq!(deleted.send().await?.status(), 204);
    let (_, _, before) = create(&app, app.live(), "", "", &aged).await?;
    assert_eq!(before["cached"], json!(true));
    assert_ne!(id(&before), id(&found));
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_is_returned_and_part_of_idempotency_only() -> Result<()> {
    let app = TestApp::start(2, &[]).await?;
    let page = |order: &str| json!({ "url": app.site.url("/tiny"), "metadata": { "order": order }, "max_age": 60 });
    let (status, _, first) = create(&app, app.live(), "", "k", &page("1")).await?;
    assert_eq!((status, &first["metadata"]), (200, &json!({ "order": "1" })), "{first}");
    let path = format!("/grabs/{}", first["id"].as_str().context("an id")?);
    assert_eq!(app.get(&path, app.live()).await?.1["metadata"], json!({ "order": "1" }));
    let (status, _, mismatch) = create(&app, app.live(), "", "k", &page("2")).await?;
    assert_eq!((status, &mismatch["error"]["code"]), (400, &json!("idempotency_mismatch")));
    let (_, _, found) = create(&app, app.live(), "", "", &page("2")).await?;
    assert_eq!((&found["cached"], &found["metadata"]), (&json!(true), &json!({ "order": "2" })), "that of the request");
    // The key of a request that an earlier grab answered repeats that answer.
    for _ in 0..2 {
        let (_, _, found) = create(&app, app.live(), "", "l", &page("3")).await?;
        assert_eq!((&found["cached"], &found["metadata"]), (&json!(true), &json!({ "order": "3" })));
    }
    assert_eq!(
        app.get(&path, app.live()).await?.1["metadata"],
        json!({ "order": "1" }),
        "the grab itself is as it was"
    );
    let wrong = json!({ "url": app.site.url("/tiny"), "metadata": { "order": 1 } });
    let (status, _, refused) = create(&app, app.live(), "", "", &wrong).await?;
    let message = refused["error"]["message"].as_str().unwrap_or_default();
    assert!(status == 400 && message.starts_with("`metadata` must be an object of at most 8 strings"), "{refused}");
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn longer_time_limits_are_for_asynchronous_grabs_only() -> Result<()> {
    let app = TestApp::start(2, &[]).await?;
    let page = json!({ "url": app.site.url("/tiny"), "timeout_ms": 60_000 });
    let (status, _, refused) = create(&app, app.live(), "", "", &page).await?;
    let message = "`timeout_ms` must be an integer from 1000 to 25000, unless the grab is asynchronous; got 60000.";
    assert_eq!((status, &refused["error"]["message"]), (400, &json!(message)));
    let (status, _, queued) = create(&app, app.live(), "?async=true", "", &page).await?;
    assert_eq!(status, 202, "{queued}");
    let path = format!("{}/grabs/{}", app.base(), queued["id"].as_str().context("an id")?);
    let request = app.client.get(path).bearer_auth(app.live()).header("prefer", "wait=25");
    let ended: Value = request.send().await?.json().await?;
    assert_eq!(ended["status"], "done", "{ended}");
    app.finish().await
}
