//! Limits that an operator overrides for a team, by the command and on the team's page.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use grabd::config::Config;
use grabd_domain::team_limits::{LimitChange, TeamLimit};
use grabd_engine::clock::Clock;
use grabd_tests::harness::TestApp;
use reqwest::Response;
use serde_json::{Value, json};

/// Upper limit of every wait.
const LIMIT: Duration = Duration::from_secs(10);

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    args: grabd::admin::Args,
}

/// Runs `grabd admin team limits …` with the SQLite database in the data directory.
async fn limits(data_dir: &Path, args: &[&str]) -> Result<bool> {
    let settings = BTreeMap::from([("data_dir", data_dir.display().to_string())]);
    let Cli { args } = Cli::try_parse_from([&["admin", "team", "limits"], args].concat())?;
    grabd::admin::run(&Config::with(&settings)?, args).await
}

async fn usage(app: &TestApp) -> Result<Response> {
    Ok(app.client.get(format!("{}/usage", app.base())).bearer_auth(app.live()).send().await?)
}

/// Repeats a request of the usage until its header names this limit.
async fn wait_for_limit(app: &TestApp, policy: &str) -> Result<Response> {
    let changed = async {
        loop {
            let response = usage(app).await?;
            if response.headers()["ratelimit-policy"] == policy {
                return Ok(response);
            }
        }
    };
    tokio::time::timeout(LIMIT, changed).await.with_context(|| format!("{policy} is not in effect"))?
}

#[tokio::test(flavor = "multi_thread")]
async fn rate_limit_of_a_team_follows_the_command_without_a_restart() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[]).await?;
    let (dir, id) = (app.data_dir(), app.team.team.to_string());
    for (wrong, expected) in [
        (["--set", "requests_per_minute=0"], "`requests_per_minute` must be from 1 to 1000000, got `0`"),
        (["--set", "no_limit=1"], "`no_limit` is not the name of a limit; the limits are requests_per_minute,"),
        (["--reset", "keys=1"], "`keys=1` is not the name of a limit"),
    ] {
        let refused = limits(&dir, &[&[&*id], &wrong[..]].concat()).await.err().context("a refusal")?;
        ensure!(format!("{refused:#}").contains(expected), "{refused:#}");
    }
    let twice = limits(&dir, &[&id, "--set", "keys=1", "--reset", "keys"]).await.err().context("a refusal")?;
    ensure!(format!("{twice:#}").contains("`keys` is given more than once; nothing was changed"), "{twice:#}");

    ensure!(limits(&dir, &[&id, "--set", "requests_per_minute=3", "keys=7"]).await?);
    let first = wait_for_limit(&app, "\"default\";q=3;w=60").await?;
    // The bucket is a new one of the new size.
    assert_eq!(first.status(), 200);
    assert_eq!(first.headers()["x-ratelimit-remaining"], "2");
    for expected in [200, 200, 429] {
        let response = usage(&app).await?;
        assert_eq!(response.status(), expected);
        assert_eq!(response.headers()["x-ratelimit-limit"], "3");
    }
    let refused: Value = usage(&app).await?.json().await?;
    let message = refused["error"]["message"].as_str().context("a message")?;
    ensure!(message.contains("3 requests per minute"), "{message}");
    ensure!(limits(&dir, &[&id, "--json"]).await?);

    ensure!(limits(&dir, &[&id, "--reset", "requests_per_minute"]).await?);
    assert_eq!(wait_for_limit(&app, "\"default\";q=100000;w=60").await?.status(), 200);
    let stored = app.service.store().limits().team_limits(app.team.team).await?;
    assert_eq!(stored.iter().map(|stored| stored.limit).collect::<Vec<_>>(), [TeamLimit::Keys]);
    app.finish().await
}

/// Overrides a limit, or removes the override, and waits until it is in effect: a change of the rate limit to
/// `requests` per minute in the same transaction shows that.
async fn change(app: &TestApp, change: &str, requests: u32) -> Result<()> {
    let changes = vec![
        LimitChange::parse(change).or_else(|_| LimitChange::reset(change))?,
        LimitChange::parse(&format!("requests_per_minute={requests}"))?,
    ];
    app.service.store().limits().change_team_limits(app.team.team, changes, Clock::system().now()).await?;
    wait_for_limit(app, &format!("\"default\";q={requests};w=60")).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn queue_of_a_team_has_its_own_limit_which_responses_name() -> Result<()> {
    // Without a browser, grabs stay in the queue.
    let app = TestApp::start_without_browser(9, &[("limits.async_queue", "40")]).await?;
    let create = async |query: &str| {
        let request = app.client.post(format!("{}/grabs{query}", app.base())).bearer_auth(app.live());
        let response = request.json(&json!({ "url": app.site.url("/tiny") })).send().await?;
        let policy = response.headers()["ratelimit-policy"].to_str()?.to_owned();
        anyhow::Ok((response.status().as_u16(), policy, response.text().await?))
    };
    let policy = |requests, queue| {
        format!("\"default\";q={requests};w=60, \"async-queue\";q={queue};qu=\"concurrent-requests\"")
    };
    change(&app, "async_queue=1", 1000).await?;
    let (status, named, _) = create("?async=true").await?;
    assert_eq!((status, named), (202, policy(1000, 1)));
    let (status, named, text) = create("?async=true").await?;
    assert_eq!((status, named), (429, policy(1000, 1)));
    ensure!(text.contains("queue_limit_exceeded"), "{text}");
    // The overview of operators shows the same limit.
    let queue = app.service.store().operator().queue(9).await?;
    assert_eq!(queue.teams.iter().map(|team| team.limit).collect::<Vec<_>>(), [Some(1)]);

    change(&app, "async_queue", 1001).await?;
    let (status, named, text) = create("?async=true").await?;
    assert_eq!((status, named), (202, policy(1001, 40)), "{text}");
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn storage_of_a_team_has_its_own_limit() -> Result<()> {
    let app = TestApp::start(9, &[]).await?;
    // Noise hardly compresses: the image takes more than a megabyte.
    let body = "%3Csvg width='1280' height='700'%3E\
        %3Cfilter id='n'%3E%3CfeTurbulence baseFrequency='0.9'/%3E%3C/filter%3E\
        %3Crect width='100%25' height='100%25' filter='url(%23n)'/%3E%3C/svg%3E";
    let url = app.site.url(&format!("/make/html?body={}", body.replace(' ', "%20")));
    let noise = json!({ "url": url });
    let (status, grab) = app.create(noise).await?;
    assert_eq!(status, 200, "{grab}");
    let stored = app.service.store().grabs().stored_bytes(app.team.team).await?;
    ensure!(stored > 1_000_000, "only {stored} bytes are stored");
    let tiny = json!({ "url": app.site.url("/tiny") });
    assert_eq!(app.create(tiny.clone()).await?.0, 200);
    change(&app, "team_megabytes=1", 1000).await?;
    let (status, body) = app.create(tiny.clone()).await?;
    let message = body["error"]["message"].as_str().unwrap_or_default();
    ensure!(status == 429 && message.contains("it may use 1 MB"), "{status} {body}");
    change(&app, "team_megabytes=0", 1001).await?;
    assert_eq!(app.create(tiny.clone()).await?.0, 200, "0: not limited");
    change(&app, "team_megabytes=1", 1002).await?;
    assert_eq!(app.create(tiny.clone()).await?.0, 429);
    change(&app, "team_megabytes", 1003).await?;
    assert_eq!(app.create(tiny).await?.0, 200);
    app.finish().await
}
