//! Admission: nobody keeps render slots busy for free.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use grabd_domain::ids::TeamId;
use grabd_engine::accounts;
use grabd_engine::clock::Clock;
use grabd_tests::contract::ApiError;
use grabd_tests::harness::TestApp;
use reqwest::Response;
use serde_json::json;
use tokio_util::task::TaskTracker;

const SLOTS: usize = 4;

/// Gives a team credits that somebody paid for.
async fn pay(app: &TestApp, team: TeamId) -> Result<()> {
    accounts::grant_prepaid(app.service.store(), team, 100, "ref:an invoice", Clock::system().now()).await?;
    Ok(())
}

/// Sends a synchronous create.
async fn create(app: &TestApp, key: &str, path: &str) -> Result<Response> {
    let body = json!({ "url": app.site.url(path), "width": 320, "height": 240 });
    Ok(app.client.post(format!("{}/grabs", app.base())).bearer_auth(key).json(&body).send().await?)
}

/// Sends a create in the background for each key, for a page that answers when it is released.
fn occupy(app: &TestApp, keys: &[String], tasks: &TaskTracker) {
    for key in keys {
        let body = json!({ "url": app.site.url("/held/tiny"), "width": 320, "height": 240 });
        let request = app.client.post(format!("{}/grabs", app.base())).bearer_auth(key).json(&body);
        tasks.spawn(request.send());
    }
}

async fn release(app: &TestApp, tasks: &TaskTracker) -> Result<()> {
    app.client.post(app.site.url("/held/tiny")).send().await?.error_for_status()?;
    tasks.close();
    tasks.wait().await;
    Ok(())
}

/// Keys of teams without an owner, each an account with one credit that nobody paid for.
async fn hostile_teams(app: &TestApp, count: usize) -> Result<Vec<String>> {
    let store = app.service.store();
    let teams = (0..count).map(|_| accounts::create_team(store, "hostile", 1, Clock::system().now()));
    Ok(try_join_all(teams).await?.iter().map(|team| team.live.expose().to_owned()).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_teams_on_all_slots_do_not_delay_a_paying_team() -> Result<()> {
    let app = TestApp::start(0, &[("browser.slots", &SLOTS.to_string()), ("abuse.strangers", "always")]).await?;
    pay(&app, app.team.team).await?;
    // The paying team is active, so one slot is kept.
    ensure!(create(&app, app.live(), "/tiny").await?.status() == 200);
    let (keys, tasks) = (hostile_teams(&app, 3 * SLOTS).await?, TaskTracker::new());
    occupy(&app, &keys, &tasks);
    app.site.wait_for_hits("/held/tiny", SLOTS - 1).await;
    for _ in 0..5 {
        let response = create(&app, app.live(), "/tiny").await?;
        ensure!(response.status() == 200, "{}", response.text().await?);
    }
    // Every other slot is still used by the hostile teams, which never got the kept one.
    assert_eq!(app.site.hits("/held/tiny"), SLOTS - 1);
    release(&app, &tasks).await?;
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn all_slots_are_shared_while_no_paying_team_is_active() -> Result<()> {
    let app = TestApp::start(0, &[("browser.slots", &SLOTS.to_string())]).await?;
    let (keys, tasks) = (hostile_teams(&app, SLOTS).await?, TaskTracker::new());
    occupy(&app, &keys, &tasks);
    app.site.wait_for_hits("/held/tiny", SLOTS).await;
    release(&app, &tasks).await?;
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn sync_create_is_refused_at_once_when_its_expected_wait_is_too_long() -> Result<()> {
    let app = TestApp::start(1, &[("browser.slots", "1")]).await?;
    // Before the first render, 2 s are assumed: with one slot, the thirteenth grab would wait for 26 s.
    let (keys, tasks) = (hostile_teams(&app, 12).await?, TaskTracker::new());
    occupy(&app, &keys[..1], &tasks);
    app.site.wait_for_hits("/held/tiny", 1).await;
    occupy(&app, &keys[1..11], &tasks);
    wait_for_waiting(&app, 10).await?;
    // The last one that is accepted, with 22 s to wait.
    occupy(&app, &keys[11..], &tasks);
    wait_for_waiting(&app, 11).await?;
    let response = create(&app, app.live(), "/tiny").await?;
    assert_eq!(response.status(), 429);
    assert_eq!(response.headers()["retry-after"], "24");
    let refused = ApiError::read(response).await?;
    assert_eq!(refused.summary(), (429, "rate_limit_exceeded", "service"));
    ensure!(refused.message.contains("queue of synchronous grabs") && refused.message.contains("24 s"), "{refused:?}");
    // Nothing is stored or held.
    let usage = app.get("/usage", app.live()).await?.1;
    assert_eq!((&usage["credits"]["held"], &usage["credits"]["total"]), (&json!(0), &json!(1)));
    assert_eq!(app.get("/grabs", app.live()).await?.1["data"], json!([]));
    // Asynchronous creates are accepted.
    let body = json!({ "url": app.site.url("/tiny") });
    let request = app.client.post(format!("{}/grabs?async=true", app.base())).bearer_auth(app.live()).json(&body);
    assert_eq!(request.send().await?.status(), 202);
    release(&app, &tasks).await?;
    app.finish().await
}

/// Waits until this many synchronous grabs wait for a slot.
async fn wait_for_waiting(app: &TestApp, count: u64) -> Result<()> {
    let enough = async {
        while app.service.store().grabs().count_waiting(grabd_domain::grabs::Class::Sync).await? < count {
            // Polls the database: nothing notifies of it.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    };
    tokio::time::timeout(Duration::from_secs(30), enough).await.context("the grabs were not queued")?
}

#[tokio::test(flavor = "multi_thread")]
async fn failing_captures_use_up_the_budget_until_it_is_refilled() -> Result<()> {
    // One failing capture uses more than the second that the account may use at once, and a minute refills one second.
    let settings =
        [("browser.slots", "2"), ("abuse.strangers", "always"), ("abuse.failed_seconds_per_minute_unpaid", "1")];
    let app = TestApp::start(5, &settings).await?;
    let missing = json!({ "url": app.site.url("/slow/1500"), "selector": "#nowhere" });
    assert_eq!(app.create_refused(missing).await?.summary(), (500, "render_failed", "target"));

    let response = create(&app, app.live(), "/tiny").await?;
    assert_eq!(response.status(), 429);
    let retry_after: u64 = response.headers()["retry-after"].to_str()?.parse()?;
    // At least half a second is missing, at one second per minute.
    ensure!((25..=25 * 60).contains(&retry_after), "{retry_after}");
    assert_eq!(ApiError::read(response).await?.summary(), (429, "rate_limit_exceeded", "request"));
    // Another account and test keys are not affected.
    let other = hostile_teams(&app, 1).await?;
    assert_eq!(create(&app, &other[0], "/tiny").await?.status(), 200);
    assert_eq!(create(&app, app.test(), "/tiny").await?.status(), 200);
    let metrics = app.client.get(format!("http://{}/metrics", app.service.metrics())).send().await?.text().await?;
    for line in [
        "grabd_creates_refused_total{reason=\"failed_renders\"} 1",
        "grabd_grab_failures_total{environment=\"live\",cause=\"target\"} 1",
    ] {
        ensure!(metrics.contains(line), "{line} is not in\n{metrics}");
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn captures_of_dead_links_are_not_refused_where_nobody_can_sign_up() -> Result<()> {
    // A team that `admin team create` made never paid, and there is nobody else.
    let settings = [("browser.slots", "2"), ("abuse.failed_seconds_per_minute_unpaid", "1")];
    let app = TestApp::start(9, &settings).await?;
    let missing = json!({ "url": app.site.url("/slow/1500"), "selector": "#nowhere" });
    for _ in 0..3 {
        assert_eq!(app.create_refused(missing.clone()).await?.summary(), (500, "render_failed", "target"));
    }
    assert_eq!(create(&app, app.live(), "/tiny").await?.status(), 200);
    // The limit of requests is the contract's everywhere.
    let app = app.restart_with(&[("limits.requests_per_minute", "60")]).await?;
    let response = create(&app, app.live(), "/tiny").await?;
    assert_eq!(response.headers()["ratelimit-policy"].to_str()?, "\"default\";q=60;w=60");
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_grabs_have_the_code_and_cause_that_their_caller_got() -> Result<()> {
    let app = TestApp::start(9, &[]).await?;
    let cases = [
        // Nothing answers DNS in this test.
        (json!({ "url": "http://nowhere.example/" }), 500, "render_failed"),
        (json!({ "url": app.site.url("/tiny"), "selector": "#nowhere" }), 500, "render_failed"),
        (json!({ "url": app.site.url("/status/403") }), 422, "render_blocked"),
        (json!({ "url": app.site.url("/hang") }), 500, "render_failed"),
    ];
    let service = &app;
    let captures = cases.iter().map(|(body, status, code)| async move {
        let failed = service.create_refused(body.clone()).await?;
        ensure!(failed.summary() == (*status, *code, "target"), "{body}: {failed:?}");
        Ok(failed)
    });
    let refused = try_join_all(captures).await?;
    // The grab says what its synchronous caller was told.
    let listed = app.get("/grabs", app.live()).await?.1;
    let listed = listed["data"].as_array().context("grabs")?;
    assert_eq!(listed.len(), refused.len());
    for ApiError { code, message, cause, .. } in &refused {
        let grab =
            listed.iter().find(|grab| grab["error_message"] == json!(message)).context("no grab has the message")?;
        assert_eq!(
            (&grab["status"], &grab["error_code"], &grab["error_cause"]),
            (&json!("failed"), &json!(code), &json!(cause)),
            "{grab}"
        );
    }
    // Other grabs and other errors.
    let (_, done) = app.create(json!({ "url": app.site.url("/tiny") })).await?;
    assert_eq!((done.get("error_code"), done.get("error_cause")), (None, None), "{done}");
    for (body, code) in [(json!({}), "bad_request"), (json!({ "url": "http://127.0.0.3/" }), "ssrf_detected")] {
        assert_eq!(app.create_refused(body).await?.summary(), (400, code, "request"));
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn time_until_the_processes_of_a_page_are_gone_counts_for_its_account() -> Result<()> {
    let settings =
        [("browser.slots", "2"), ("abuse.strangers", "always"), ("abuse.failed_seconds_per_minute_unpaid", "1")];
    let app = TestApp::start(0, &settings).await?;
    let team = accounts::create_team(app.service.store(), "hostile", 100, Clock::system().now()).await?;
    let key = team.live.expose();
    // An ordinary page costs its account nothing.
    for _ in 0..3 {
        ensure!(create(&app, key, "/tiny").await?.status() == 200);
    }
    // Neither are the images of this page failures, but its workers run on.
    let refused = async {
        loop {
            let response = create(&app, key, "/hostile/busy-workers").await?;
            match response.status().as_u16() {
                200 => {}
                429 => return response.json::<serde_json::Value>().await.context("an error"),
                status => anyhow::bail!("{status}"),
            }
        }
    };
    let refused = tokio::time::timeout(Duration::from_secs(60), refused).await??;
    let message = refused["error"]["message"].as_str().unwrap_or_default();
    ensure!(message.contains("failed"), "{refused}");
    app.finish().await
}
