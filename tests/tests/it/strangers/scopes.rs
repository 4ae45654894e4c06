//! A key that may only create reads no image of another key, and neither reads nor changes its monitors.

use anyhow::{Context, Result};
use grabd_domain::credentials::{Environment, Scope, Scopes};
use grabd_engine::accounts::{self, KeyLimits};
use grabd_engine::clock::Clock;
use grabd_tests::agent::{Agent, MODERN};
use grabd_tests::harness::TestApp;
use reqwest::Method;
use serde_json::{Value, json};

/// A test key of the app's team that may only create.
async fn create_only(app: &TestApp) -> Result<String> {
    let scopes = Scopes::new([Scope::Create]).context("one scope")?;
    let limits = KeyLimits { scopes, life: None };
    let (team, now) = (app.team.team, Clock::system().now());
    let (_, key) =
        accounts::issue_restricted_key(app.service.store(), team, Environment::Test, "k", limits, now).await?;
    Ok(key.expose().to_owned())
}

async fn create(app: &TestApp, key: &str, once: &str, body: &Value) -> Result<(u16, Value)> {
    let mut request = app.client.post(format!("{}/grabs", app.base())).bearer_auth(key).json(body);
    if !once.is_empty() {
        request = request.header("idempotency-key", once);
    }
    let response = request.send().await?;
    Ok((response.status().as_u16(), response.json().await?))
}

#[tokio::test(flavor = "multi_thread")]
async fn create_key_reuses_its_own_images_only() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[]).await?;
    let (restricted, other) = (create_only(&app).await?, create_only(&app).await?);
    let page = |order: &str| json!({ "url": "https://example.com/", "max_age": 3600, "metadata": { "order": order } });
    let (_, secret) = create(&app, app.test(), "", &page("secret")).await?;

    let (status, own) = create(&app, &restricted, "", &page("own")).await?;
    assert_eq!((status, &own["cached"], &own["metadata"]["order"]), (200, &Value::Null, &json!("own")), "{own}");
    assert_ne!(own["id"], secret["id"]);
    let (_, again) = create(&app, &restricted, "", &page("again")).await?;
    assert_eq!((&again["id"], &again["cached"]), (&own["id"], &json!(true)), "its own image: {again}");
    assert_eq!(again["metadata"]["order"], "again", "metadata is that of the request");
    let (_, others) = create(&app, &other, "", &page("other")).await?;
    assert_eq!((&others["cached"], &others["metadata"]["order"]), (&Value::Null, &json!("other")), "{others}");
    assert_ne!(others["id"], own["id"]);

    // The same in a batch and over MCP.
    let batch = json!({ "grabs": [{ "url": "https://example.com/a", "max_age": 3600 }] });
    let batched = async |key: &str| {
        let request = app.client.post(format!("{}/grabs/batch", app.base())).bearer_auth(key).json(&batch);
        let answer: Value = request.send().await?.json().await?;
        anyhow::Ok(answer["results"][0]["grab"].clone())
    };
    let (first, second) = (batched(app.test()).await?, batched(&restricted).await?);
    assert!(first["id"].is_string() && first["id"] != second["id"], "{first} {second}");
    assert_eq!(batched(app.test()).await?["cached"], json!(true));
    let page_of_agent = json!({ "url": "https://example.com/", "max_age": 3600 });
    let called = Agent::new(&app, &other, MODERN).call("create_grab", page_of_agent).await?;
    assert_eq!((&called.structured()?["id"], &called.structured()?["cached"]), (&others["id"], &json!(true)));

    // A key that may read gets images of all keys, with the metadata of its request.
    let (_, found) = create(&app, app.test(), "", &page("found")).await?;
    assert_eq!((&found["cached"], &found["metadata"]["order"]), (&json!(true), &json!("found")), "{found}");
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn create_key_gets_no_answer_to_the_idempotency_key_of_another_key() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[]).await?;
    let restricted = create_only(&app).await?;
    let page = json!({ "url": "https://example.com/once" });
    let (_, first) = create(&app, app.test(), "order-1", &page).await?;
    let (status, refused) = create(&app, &restricted, "order-1", &page).await?;
    assert_eq!((status, &refused["error"]["code"]), (400, &json!("idempotency_mismatch")), "{refused}");
    assert!(!refused.to_string().contains(first["id"].as_str().context("an id")?), "{refused}");
    // Its own one is repeated, and a key that may read gets both.
    let (_, own) = create(&app, &restricted, "order-2", &page).await?;
    let (status, again) = create(&app, &restricted, "order-2", &page).await?;
    assert_eq!((status, &again["id"]), (200, &own["id"]));
    assert_eq!(create(&app, app.test(), "order-2", &page).await?.1["id"], own["id"]);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn create_key_compares_with_its_own_images_only() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[]).await?;
    let restricted = create_only(&app).await?;
    let page = json!({ "url": "https://example.com/" });
    let (_, secret) = create(&app, app.test(), "", &page).await?;
    let (_, own) = create(&app, &restricted, "", &page).await?;
    let compared = |earlier: &Value| json!({ "url": "https://example.com/b", "compare_to": earlier["id"] });
    let (status, refused) = create(&app, &restricted, "", &compared(&secret)).await?;
    assert_eq!((status, &refused["error"]["code"]), (400, &json!("bad_request")), "{refused}");
    assert_eq!(create(&app, &restricted, "", &compared(&own)).await?.0, 200);
    assert_eq!(create(&app, app.test(), "", &compared(&own)).await?.0, 200);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn create_key_sees_and_changes_its_own_monitors_only() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[]).await?;
    let (restricted, other) = (create_only(&app).await?, create_only(&app).await?);
    let call = async |key: &str, method: Method, path: &str, body: Value| {
        let request = app.client.request(method, format!("{}{path}", app.base())).bearer_auth(key).json(&body);
        let response = request.send().await?;
        let (status, text) = (response.status().as_u16(), response.text().await?);
        let body: Value = if text.is_empty() { Value::Null } else { serde_json::from_str(&text)? };
        anyhow::Ok((status, body))
    };
    let body = json!({ "capture": { "url": "https://93.184.215.14/" }, "every": "30d" });
    let (status, created) = call(&restricted, Method::POST, "/monitors", body).await?;
    assert_eq!(status, 201, "{created}");
    let monitor = format!("/monitors/{}", created["id"].as_str().context("an id")?);
    let accept = format!("{monitor}/accept");
    for (method, path) in [(Method::PATCH, &monitor), (Method::POST, &accept), (Method::DELETE, &monitor)] {
        let (status, refused) = call(&other, method.clone(), path, json!({})).await?;
        assert_eq!((status, &refused["error"]["code"]), (404, &json!("not_found")), "{method} {refused}");
    }
    // Its own key, and one that may read, change it.
    for (key, paused, state) in [(&*restricted, true, "paused"), (app.test(), false, "active")] {
        let (status, changed) = call(key, Method::PATCH, &monitor, json!({ "paused": paused })).await?;
        assert_eq!((status, &changed["state"]), (200, &json!(state)), "{changed}");
    }
    assert_eq!(call(&restricted, Method::DELETE, &monitor, json!({})).await?.0, 204);

    // The same with monitors that were created together.
    let body = json!({ "urls": ["https://93.184.215.14/a", "https://93.184.215.14/b"], "every": "30d" });
    let (status, created) = call(&restricted, Method::POST, "/monitors/batch", body).await?;
    assert_eq!(status, 201, "{created}");
    let all = created["monitors"].as_array().context("monitors")?;
    assert_eq!(all.len(), 2, "{created}");
    for one in all {
        let path = format!("/monitors/{}", one["id"].as_str().context("an id")?);
        let (status, refused) = call(&other, Method::DELETE, &path, json!({})).await?;
        assert_eq!((status, &refused["error"]["code"]), (404, &json!("not_found")), "{refused}");
        assert_eq!(call(&restricted, Method::DELETE, &path, json!({})).await?.0, 204);
    }
    app.finish().await
}
