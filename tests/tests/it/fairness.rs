//! Whoever floods the queue lines up behind itself, those who hold the line go first, and nobody is starved.

use anyhow::{Context, Result, ensure};
use futures::future::{join_all, try_join_all};
use grabd_engine::accounts;
use grabd_engine::clock::Clock;
use grabd_tests::harness::Harness;
use reqwest::Response;
use serde_json::{Value, json};

/// Grabs rendered at a time.
const SLOTS: usize = 2;
const FLOOD: u32 = 300;

async fn harness(credits: u32, async_queue: u32) -> Result<Harness> {
    Harness::start(credits, &[("browser.slots", &SLOTS.to_string()), ("limits.async_queue", &async_queue.to_string())])
        .await
}

/// Another team's live key.
async fn another_team(harness: &Harness, credits: u32) -> Result<String> {
    let made = accounts::create_team(harness.service.store(), "another", credits, Clock::system().now()).await?;
    Ok(made.live.expose().to_owned())
}

async fn ask(harness: &Harness, key: &str, path: &str, query: &str) -> Result<Response> {
    let body = json!({ "url": harness.site.url(path), "width": 320, "height": 240 });
    let request = harness.client.post(format!("{}/grabs{query}", harness.base())).bearer_auth(key).json(&body);
    Ok(request.send().await?)
}

async fn queue(harness: &Harness, key: &str, path: &str) -> Result<String> {
    let response = ask(harness, key, path, "?async=true").await?;
    ensure!(response.status() == 202, "{}", response.text().await?);
    let grab: Value = response.json().await?;
    Ok(grab["id"].as_str().context("an id")?.to_owned())
}

/// How many pages at `of` were opened between the `from`th request of the site and the first one for `path`.
fn opened_before(order: &[String], from: usize, path: &str, of: &str) -> Result<usize> {
    let at = order.iter().position(|asked| asked == path).context("it was opened")?;
    Ok(order.get(from..at).unwrap_or_default().iter().filter(|asked| *asked == of).count())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_single_grab_passes_other_teams_floods() -> Result<()> {
    let harness = harness(FLOOD, FLOOD).await?;
    let (second, single) = (another_team(&harness, FLOOD).await?, another_team(&harness, 1).await?);
    // Both floods at once, so that neither is old news when the other comes.
    let floods = (0..FLOOD / 2).map(|_| async {
        queue(&harness, harness.live(), "/tiny").await?;
        queue(&harness, &second, "/tiny").await
    });
    try_join_all(floods).await?;
    let before = harness.site.hits_in_all();
    queue(&harness, &single, "/colour/1/2/3").await?;
    harness.site.wait_for_hits("/colour/1/2/3", 1).await;
    let order = harness.site.order();
    let first = opened_before(&order, before, "/colour/1/2/3", "/tiny")?;
    let active_teams = 3;
    assert!(first <= SLOTS + active_teams, "{first} pages of the floods were opened first");
    let left = harness.get("/grabs?status=pending&limit=100", harness.live()).await?.1;
    assert_eq!(left["has_more"], json!(true), "the floods were over before the single grab came");
    harness.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn those_who_hold_the_line_go_first_and_nobody_is_starved() -> Result<()> {
    let harness = harness(300, 100).await?;
    let other = another_team(&harness, 100).await?;
    let asynchronous = try_join_all((0..30).map(|_| queue(&harness, harness.live(), "/tiny"))).await?;

    // One who comes last and holds the line waits for a slot, and for nobody else.
    let before = harness.site.hits_in_all();
    assert_eq!(ask(&harness, &other, "/colour/4/5/6", "").await?.status(), 200);
    let first = opened_before(&harness.site.order(), before, "/colour/4/5/6", "/tiny")?;
    // Those that had a slot may not have opened their page yet, and every fifth look takes from the other queue.
    assert!(first <= 2 * SLOTS, "{first} asynchronous grabs went before one who holds the line");

    // More who hold the line than there are slots, without a pause: the others still go on, one look in five.
    let before = harness.site.hits("/tiny");
    let line = (0..4).map(|_| async {
        for _ in 0..6 {
            let response = ask(&harness, &other, "/colour/7/8/9", "").await?;
            ensure!(response.status() == 200, "{}", response.text().await?);
        }
        Ok(())
    });
    try_join_all(line).await?;
    let went_on = harness.site.hits("/tiny") - before;
    assert!((1..=16).contains(&went_on), "{went_on} asynchronous grabs were rendered beside 24 synchronous ones");

    // And all of them end well.
    for id in asynchronous {
        let request = harness.client.get(format!("{}/grabs/{id}", harness.base())).bearer_auth(harness.live());
        let grab: Value = request.header("prefer", "wait=25").send().await?.json().await?;
        assert_eq!(grab["status"], json!("done"), "{grab}");
    }
    harness.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_queue_limit_is_exact() -> Result<()> {
    // None of these can end while the others are created, so that all of them are open together.
    const PAGE: &str = "/slow/4000";
    let harness = harness(200, 50).await?;
    let asked = join_all((0..100).map(|_| ask(&harness, harness.live(), PAGE, "?async=true"))).await;
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
    // Nothing is stored or held for those that were refused.
    let listed = harness.get("/grabs?limit=100", harness.live()).await?.1;
    assert_eq!(listed["data"].as_array().map(Vec::len), Some(50));
    let usage = harness.get("/usage", harness.live()).await?.1;
    assert_eq!((&usage["credits"]["held"], &usage["credits"]["total"]), (&json!(50), &json!(150)));
    // Neither another team's queue nor who holds the line is part of this one.
    let other = another_team(&harness, 1).await?;
    queue(&harness, &other, PAGE).await?;
    assert_eq!(ask(&harness, harness.live(), "/tiny", "").await?.status(), 200);
    harness.finish().await
}
