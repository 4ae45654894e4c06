//! Fair queueing: a flood delays only its own team, synchronous grabs go first, and no queue is starved.

use anyhow::{Context, Result, ensure};
use futures::future::{join_all, try_join_all};
use grabd_engine::accounts;
use grabd_engine::clock::Clock;
use grabd_tests::harness::TestApp;
use reqwest::Response;
use serde_json::{Value, json};

/// Concurrent captures.
const SLOTS: usize = 2;
const FLOOD: u32 = 300;

async fn start(credits: u32, async_queue: u32) -> Result<TestApp> {
    TestApp::start(credits, &[("browser.slots", &SLOTS.to_string()), ("limits.async_queue", &async_queue.to_string())])
        .await
}

/// Creates another team and returns its live key.
async fn another_team(app: &TestApp, credits: u32) -> Result<String> {
    let made = accounts::create_team(app.service.store(), "another", credits, Clock::system().now()).await?;
    Ok(made.live.expose().to_owned())
}

async fn create(app: &TestApp, key: &str, path: &str, query: &str) -> Result<Response> {
    let body = json!({ "url": app.site.url(path), "width": 320, "height": 240 });
    let request = app.client.post(format!("{}/grabs{query}", app.base())).bearer_auth(key).json(&body);
    Ok(request.send().await?)
}

async fn queue(app: &TestApp, key: &str, path: &str) -> Result<String> {
    let response = create(app, key, path, "?async=true").await?;
    ensure!(response.status() == 202, "{}", response.text().await?);
    let grab: Value = response.json().await?;
    Ok(grab["id"].as_str().context("an id")?.to_owned())
}

/// Counts the requests for `of` after the first `from` requests of the site and before the first one for `path`.
fn opened_before(order: &[String], from: usize, path: &str, of: &str) -> Result<usize> {
    let at = order.iter().position(|asked| asked == path).context("the page was not opened")?;
    Ok(order.get(from..at).unwrap_or_default().iter().filter(|asked| *asked == of).count())
}

#[tokio::test(flavor = "multi_thread")]
async fn single_grab_overtakes_floods_of_other_teams() -> Result<()> {
    let app = start(FLOOD, FLOOD).await?;
    let (second, single) = (another_team(&app, FLOOD).await?, another_team(&app, 1).await?);
    // Both floods run concurrently, so that neither is older than the other.
    let floods = (0..FLOOD / 2).map(|_| async {
        queue(&app, app.live(), "/tiny").await?;
        queue(&app, &second, "/tiny").await
    });
    try_join_all(floods).await?;
    let before = app.site.total_hits();
    queue(&app, &single, "/colour/1/2/3").await?;
    app.site.wait_for_hits("/colour/1/2/3", 1).await;
    let order = app.site.order();
    let first = opened_before(&order, before, "/colour/1/2/3", "/tiny")?;
    let active_teams = 3;
    assert!(first <= SLOTS + active_teams, "{first} pages of the floods were opened first");
    let left = app.get("/grabs?status=pending&limit=100", app.live()).await?.1;
    assert_eq!(left["has_more"], json!(true), "the floods ended before the single grab was created");
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn synchronous_grabs_go_first_without_starving_asynchronous_grabs() -> Result<()> {
    let app = start(300, 100).await?;
    let other = another_team(&app, 100).await?;
    let asynchronous = try_join_all((0..30).map(|_| queue(&app, app.live(), "/tiny"))).await?;

    // A synchronous grab that is created last waits only for a slot.
    let before = app.site.total_hits();
    assert_eq!(create(&app, &other, "/colour/4/5/6", "").await?.status(), 200);
    let first = opened_before(&app.site.order(), before, "/colour/4/5/6", "/tiny")?;
    // Captures in progress may not have opened their page yet, and every fifth assignment comes from the other queue.
    assert!(first <= 2 * SLOTS, "{first} asynchronous grabs went before the synchronous grab");

    // More synchronous grabs than slots, without a pause: asynchronous grabs still get one assignment in five.
    let before = app.site.hits("/tiny");
    let synchronous = (0..4).map(|_| async {
        for _ in 0..6 {
            let response = create(&app, &other, "/colour/7/8/9", "").await?;
            ensure!(response.status() == 200, "{}", response.text().await?);
        }
        Ok(())
    });
    try_join_all(synchronous).await?;
    let rendered = app.site.hits("/tiny") - before;
    assert!((1..=16).contains(&rendered), "{rendered} asynchronous grabs were rendered beside 24 synchronous ones");

    // All asynchronous grabs are done in the end.
    for id in asynchronous {
        let request = app.client.get(format!("{}/grabs/{id}", app.base())).bearer_auth(app.live());
        let grab: Value = request.header("prefer", "wait=25").send().await?.json().await?;
        assert_eq!(grab["status"], json!("done"), "{grab}");
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn async_queue_limit_is_exact() -> Result<()> {
    // These grabs stay open while the others are created.
    const PAGE: &str = "/slow/4000";
    let app = start(200, 50).await?;
    let asked = join_all((0..100).map(|_| create(&app, app.live(), PAGE, "?async=true"))).await;
    let (mut queued, mut refused) = (0, 0);
    for response in asked {
        let response = response?;
        let headers = response.headers().clone();
        match response.status().as_u16() {
            202 => queued += 1,
            429 => {
                refused += 1;
                assert_eq!(headers["retry-after"], "5");
                let answer: Value = response.json().await?;
                assert_eq!(answer["error"]["code"], json!("queue_limit_exceeded"));
            }
            other => panic!("{other} {}", response.text().await?),
        }
    }
    assert_eq!((queued, refused), (50, 50));
    // Nothing is stored or held for refused creates.
    let listed = app.get("/grabs?limit=100", app.live()).await?.1;
    assert_eq!(listed["data"].as_array().map(Vec::len), Some(50));
    let usage = app.get("/usage", app.live()).await?.1;
    assert_eq!((&usage["credits"]["held"], &usage["credits"]["total"]), (&json!(50), &json!(150)));
    // The limit does not count other teams' grabs or synchronous grabs.
    let other = another_team(&app, 1).await?;
    queue(&app, &other, PAGE).await?;
    assert_eq!(create(&app, app.live(), "/tiny", "").await?.status(), 200);
    app.finish().await
}
