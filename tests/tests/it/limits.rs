//! The rate limit and its headers.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use grabd_engine::clock::Clock;
use grabd_store::Store;
use grabd_tests::harness::TestApp;
use serde_json::{Value, json};
use tokio::time::sleep;

#[tokio::test(flavor = "multi_thread")]
async fn requests_per_minute_are_limited_per_environment() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[("limits.requests_per_minute", "5")]).await?;
    let usage = format!("{}/usage", app.base());
    for left in (0..5).rev() {
        let response = app.client.get(&usage).bearer_auth(app.live()).send().await?;
        assert_eq!(response.status(), 200);
        let headers = response.headers();
        assert_eq!(headers["ratelimit-policy"], "\"default\";q=5;w=60");
        assert_eq!(headers["x-ratelimit-limit"], "5");
        assert_eq!(headers["x-ratelimit-remaining"].to_str()?, left.to_string());
    }
    let response = app.client.get(&usage).bearer_auth(app.live()).send().await?;
    assert_eq!(response.status(), 429);
    let wait: u64 = response.headers()["retry-after"].to_str()?.parse()?;
    assert!((1..=12).contains(&wait), "{wait}");
    assert!(response.text().await?.contains("rate_limit_exceeded"));
    // The other environment and requests without a key have separate buckets.
    assert_eq!(app.client.get(&usage).bearer_auth(app.test()).send().await?.status(), 200);
    let pricing = format!("{}/pricing", app.base());
    for _ in 0..5 {
        assert_eq!(app.client.get(&pricing).send().await?.status(), 200);
    }
    assert_eq!(app.client.get(&pricing).send().await?.status(), 429);
    // Images and health checks are not API requests.
    for _ in 0..10 {
        let health = format!("{}/healthz", app.service.public_url());
        assert_eq!(app.client.get(health).send().await?.status(), 200);
    }
    app.finish().await
}

/// Long polls and streams of events count apart from requests, per minute and at the same time.
#[tokio::test(flavor = "multi_thread")]
async fn waits_have_limits_of_their_own() -> Result<()> {
    let app = TestApp::start_without_browser(1, &[("limits.requests_per_minute", "6")]).await?;
    let create = app.client.post(format!("{}/grabs?async=true", app.base())).bearer_auth(app.live());
    let created = create.json(&json!({ "url": app.site.url("/tiny") })).send().await?;
    assert_eq!(created.status(), 202);
    let grab: Value = created.json().await?;
    let url = format!("{}/grabs/{}", app.base(), grab["id"].as_str().context("an id")?);
    let get = |path: &str| app.client.get(format!("{url}{path}")).bearer_auth(app.live());
    let mut open = Vec::new();
    for left in (30..60).rev() {
        let response = get("/events").send().await?;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["ratelimit-policy"], "\"waits\";q=60;w=60");
        assert_eq!(response.headers()["x-ratelimit-limit"], "60");
        let remaining: u32 = response.headers()["x-ratelimit-remaining"].to_str()?.parse()?;
        assert!(remaining >= left, "{remaining} of {left}");
        open.push(response);
    }
    let refused = get("").header("prefer", "wait=25").send().await?;
    assert_eq!(refused.status(), 429);
    assert_eq!(refused.headers()["retry-after"], "2");
    let message = refused.text().await?;
    ensure!(message.contains("rate_limit_exceeded") && message.contains("30 may be open"), "{message}");
    // Requests are not counted with them, and plain reads are requests.
    let read = get("").send().await?;
    assert_eq!(read.status(), 200);
    assert_eq!(read.headers()["ratelimit"], "\"default\";r=4;t=10");
    // One that ends makes place for another.
    open.pop();
    while get("").header("prefer", "wait=1").send().await?.status() == 429 {
        sleep(Duration::from_millis(20)).await;
    }
    drop(open);
    app.finish().await
}

/// A credential that was accepted is not looked up again for a moment.
#[tokio::test(flavor = "multi_thread")]
async fn key_that_another_process_revokes_is_refused_within_a_second() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[]).await?;
    let other = Store::open(&format!("sqlite://{}", app.data_dir().join("grabd.db").display())).await?;
    assert_eq!(app.get("/usage", app.live()).await?.0, 200);
    assert!(other.accounts().revoke_key(app.team.live_id, Clock::system().now()).await?);
    let revoked = Instant::now();
    while app.get("/usage", app.live()).await?.0 != 401 {
        ensure!(revoked.elapsed() < Duration::from_secs(1), "the revoked key is still accepted");
        sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(app.get("/usage", app.test()).await?.0, 200);
    // This process notices its own changes at once.
    assert!(app.service.store().accounts().revoke_key(app.team.test_id, Clock::system().now()).await?);
    assert_eq!(app.get("/usage", app.test()).await?.0, 401);
    other.close().await;
    app.finish().await
}
