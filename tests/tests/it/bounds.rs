//! What a page or a customer sends is bounded where it enters, and a full disk refuses creates.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use grabd::config::Config;
use grabd::serve::{Rendering, Timeouts};
use grabd_domain::grabs::{Failure, FailureReason, RenderMetadata};
use grabd_domain::ids::GrabId;
use grabd_domain::limits::PAGE_URL_BYTES;
use grabd_domain::oauth::{ACCESS_TOKENS, USED_REFRESH_TOKENS};
use grabd_domain::webhooks::MAX_OPEN;
use grabd_engine::accounts;
use grabd_engine::clock::Clock;
use grabd_store::grabs::{FailGrab, FailureSource};
use grabd_tests::harness::TestApp;
use grabd_tests::site::hostile::pages;
use sea_orm::{ConnectionTrait, Database, Statement};
use serde_json::{Value, json};

/// A page with an address of 1.9 MB. Three such addresses would exceed the maximum size of a message.
#[tokio::test(flavor = "multi_thread")]
async fn long_address_of_a_page_is_shortened_and_the_list_stays_readable() -> Result<()> {
    let app = TestApp::start(5, &[]).await?;
    let page = pages().find(|page| page.name == "long-address").context("the page")?;
    for _ in 0..3 {
        let (grab, _) = app.capture(&page.path(), json!({})).await?;
        let url = grab["final_url"].as_str().context("a final_url")?;
        ensure!(url.len() <= PAGE_URL_BYTES && url.starts_with(&app.site.origin()), "{} bytes", url.len());
        ensure!(url.ends_with("aaa…"), "a mark shows that it was cut");
    }
    let (status, list) = app.get("/grabs", app.live()).await?;
    ensure!(status == 200 && list["data"].as_array().is_some_and(|grabs| grabs.len() == 3), "{status}");
    app.finish().await
}

/// What bounds each table is in the operator's manual.
#[tokio::test(flavor = "multi_thread")]
async fn bound_of_every_table_is_documented() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[]).await?;
    let database = Database::connect(format!("sqlite://{}", app.data_dir().join("grabd.db").display())).await?;
    let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'";
    let tables = Statement::from_string(database.get_database_backend(), sql);
    let tables = database.query_all_raw(tables).await?;
    database.close().await?;
    let manual = include_str!("../../../docs/operating/retention.md");
    let rows =
        manual.lines().skip_while(|line| !line.starts_with("| Table |")).take_while(|line| line.starts_with('|'));
    let documented: Vec<&str> = rows.flat_map(|row| row.split('`').skip(1).step_by(2)).collect();
    ensure!(tables.len() > 30, "{} tables", tables.len());
    for table in tables {
        let table: String = table.try_get_by_index(0)?;
        ensure!(
            documented.contains(&table.as_str()),
            "`{table}` is not in the list of bounds of docs/operating/retention.md"
        );
    }
    app.finish().await
}

/// What an account without payment may store is a sum, and its parts are the limits of the code.
#[test]
fn documented_sum_of_what_an_unpaid_account_may_store_adds_up() -> Result<()> {
    let manual = include_str!("../../../docs/operating/retention.md");
    let rows = manual.lines().skip_while(|line| !line.starts_with("| What | Bound | MB |")).skip(2);
    let mut parts = Vec::new();
    for row in rows.take_while(|line| line.starts_with('|')) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let megabytes: u64 = cells.get(3).context(row)?.replace(',', "").parse().context(row)?;
        parts.push((*cells.get(2).context(row)?, megabytes));
    }
    let (_, sum) = parts.pop().context("a sum")?;
    ensure!(parts.len() > 6 && parts.iter().map(|(_, megabytes)| megabytes).sum::<u64>() == sum, "{parts:?} {sum}");
    let retention = Config::with(&BTreeMap::new())?.retention;
    let limits = [
        ("`retention.test_megabytes`".to_owned(), retention.test_megabytes),
        ("`retention.unpaid_megabytes`".to_owned(), retention.unpaid_megabytes),
        (format!("{} tokens each", thousands(USED_REFRESH_TOKENS + ACCESS_TOKENS)), 28),
        (format!("{} open ones", thousands(MAX_OPEN.into())), 20),
    ];
    for (bound, megabytes) in limits {
        let is_documented = parts.iter().any(|(text, documented)| text.contains(&bound) && *documented == megabytes);
        ensure!(is_documented, "{bound} {megabytes}: {parts:?}");
    }
    let changelog = include_str!("../../../CHANGELOG.md");
    ensure!(changelog.contains(&format!("can store at most {} MB in all", thousands(sum))));
    Ok(())
}

fn thousands(number: u64) -> String {
    format!("{},{:03}", number / 1000, number % 1000)
}

/// Which creates are refused depends on how much is missing, and is tested with the rule. Those of test keys always are.
#[tokio::test(flavor = "multi_thread")]
async fn free_creates_are_refused_while_the_disk_is_almost_full_and_the_service_stays_ready() -> Result<()> {
    // The disk that has this build has less free space. That of temporary files may be a part of the memory.
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let images = format!("file://{}", directory.path().display());
    let settings =
        [("retention.min_free_percent", "99"), ("images.url", images.as_str()), ("accounts.sign_up", "true")];
    let app = TestApp::start_with(5, &settings, Timeouts::default(), Rendering::Chromium).await?;
    // The team never paid.
    for (key, query) in [(app.live(), ""), (app.live(), "?async=true"), (app.test(), "")] {
        let request = app.client.post(format!("{}/grabs{query}", app.base())).bearer_auth(key);
        let response = request.json(&json!({ "url": app.site.url("/tiny") })).send().await?;
        ensure!(response.status() == 429, "{}", response.status());
        ensure!(response.headers()["retry-after"] == "60", "{:?}", response.headers());
        let body: serde_json::Value = response.json().await?;
        ensure!(body["error"]["code"] == "rate_limit_exceeded", "{body}");
        ensure!(body["error"]["message"].as_str().is_some_and(|text| text.contains("disk space")), "{body}");
    }
    let (_, list) = app.get("/grabs", app.live()).await?;
    ensure!(list["data"] == json!([]), "{list}");
    // A load balancer must not take a service away from everybody because of what some customers store.
    let ready = app.client.get(format!("http://{}/readyz", app.service.http())).send().await?;
    ensure!(ready.status() == 200, "{}", ready.status());
    let reason = ready.text().await?;
    ensure!(reason.starts_with("ready\nshort of: disk (") && reason.contains("MiB required"), "{reason}");
    let metrics = app.client.get(format!("http://{}/metrics", app.service.metrics())).send().await?.text().await?;
    let free = metrics.lines().find_map(|line| line.strip_prefix("grabd_images_free_bytes "));
    ensure!(free.context("a sample")?.parse::<f64>()? > 0.0, "{metrics}");
    app.finish().await
}

/// Options of about 150 KB, which would otherwise be stored with each placeholder.
fn long_options(number: usize) -> Value {
    let script = format!("{number}{}", "😀".repeat(16_000));
    json!({ "url": "https://example.com/", "script": script, "css": "😀".repeat(16_000), "hide": ["a"] })
}

#[tokio::test(flavor = "multi_thread")]
async fn test_key_that_stores_too_much_is_refused_alone() -> Result<()> {
    // An open service, with the defaults.
    let app = TestApp::start_without_browser(0, &[("accounts.sign_up", "true")]).await?;
    let other = accounts::create_team(app.service.store(), "another", 0, Clock::system().now()).await?;
    let create = async |key: &str, body: Value| {
        let response = app.client.post(format!("{}/grabs", app.base())).bearer_auth(key).json(&body).send().await?;
        let (status, retry_after) = (response.status().as_u16(), response.headers().get("retry-after").cloned());
        anyhow::Ok((status, retry_after, response.json::<Value>().await?))
    };
    let mut created = 0;
    let (retry_after, refused) = loop {
        ensure!(created < 1000, "150 MB were stored for nothing, and no create was refused");
        match create(app.test(), long_options(created)).await? {
            (200, ..) => created += 1,
            (status, retry_after, body) => {
                ensure!(status == 429, "{status} {body}");
                break (retry_after, body);
            }
        }
    };
    ensure!(created > 500, "{created}");
    ensure!(refused["error"]["code"] == "rate_limit_exceeded", "{refused}");
    let message = refused["error"]["message"].as_str().context("a message")?;
    ensure!(message.contains("test captures of this account") && message.contains("100 MB"), "{message}");
    ensure!(retry_after.is_some_and(|retry_after| retry_after == "3600"));
    // Short ones take space, too.
    let short = json!({ "url": "https://example.com/" });
    ensure!(create(app.test(), short.clone()).await?.0 == 429);
    // Nobody else is affected.
    ensure!(create(other.test.expose(), short).await?.0 == 200);
    let ready = app.client.get(format!("http://{}/readyz", app.service.http())).send().await?.text().await?;
    ensure!(!ready.contains("disk"), "{ready}");
    let metrics = app.client.get(format!("http://{}/metrics", app.service.metrics())).send().await?.text().await?;
    ensure!(metrics.contains("grabd_creates_refused_total{reason=\"storage\"} 2"), "{metrics}");
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn account_that_never_paid_is_refused_when_it_stores_too_much() -> Result<()> {
    let settings = [("accounts.sign_up", "true"), ("retention.unpaid_megabytes", "1")];
    let app = TestApp::start_without_browser(500, &settings).await?;
    let failed = json!({ "url": app.site.url("/tiny"), "script": "😀".repeat(16_000) });
    let mut queued = 0;
    let refused = loop {
        ensure!(queued < 100, "never refused");
        let request = app.client.post(format!("{}/grabs?async=true", app.base())).bearer_auth(app.live());
        let response = request.json(&failed).send().await?;
        let (status, body) = (response.status().as_u16(), response.json::<Value>().await?);
        if status != 202 {
            ensure!(status == 429, "{status} {body}");
            break body;
        }
        queued += 1;
        // Nothing renders it, so it is cancelled: it costs nothing.
        let id: GrabId = body["id"].as_str().context("an id")?.parse()?;
        let failure = Failure::new(FailureReason::RenderFailed, "a test");
        let (source, metadata, now) = (FailureSource::Cancel, RenderMetadata::default(), Clock::system().now());
        let ended = app.service.store().grabs().fail(FailGrab { grab: id, source, failure, metadata, now }).await?;
        ensure!(ended.is_some());
    };
    let message = refused["error"]["message"].as_str().context("a message")?;
    ensure!((10..20).contains(&queued) && message.contains("they may take 1 MB"), "{queued} {message}");
    // Somebody who pays may have more.
    accounts::grant_prepaid(app.service.store(), app.team.team, 1, "ref:an invoice", Clock::system().now()).await?;
    let request = app.client.post(format!("{}/grabs?async=true", app.base())).bearer_auth(app.live());
    ensure!(request.json(&failed).send().await?.status() == 202);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn team_with_too_many_images_creates_no_more_until_it_deletes_some() -> Result<()> {
    let app = TestApp::start(9, &[("retention.team_megabytes", "1")]).await?;
    // Noise hardly compresses: each image takes more than a quarter of the space.
    let body = "%3Csvg width='1900' height='1000'%3E\
        %3Cfilter id='n'%3E%3CfeTurbulence baseFrequency='0.9'/%3E%3C/filter%3E\
        %3Crect width='100%25' height='100%25' filter='url(%23n)'/%3E%3C/svg%3E";
    let url = app.site.url(&format!("/make/html?body={}", body.replace(' ', "%20")));
    let noise = json!({ "url": url, "width": 1920, "height": 1080 });
    let mut ids = Vec::new();
    let refused = loop {
        ensure!(ids.len() < 8, "never refused");
        let (status, body) = app.create(noise.clone()).await?;
        if status != 200 {
            break (status, body);
        }
        ids.push(body["id"].as_str().context("an id")?.to_owned());
    };
    let (status, body) = refused;
    ensure!(status == 429 && body["error"]["code"] == "rate_limit_exceeded", "{status} {body}");
    ensure!(body["error"]["message"].as_str().is_some_and(|text| text.contains("it may use 1 MB")), "{body}");
    // Test grabs have no stored image.
    let request = app.client.post(format!("{}/grabs", app.base())).bearer_auth(app.test());
    ensure!(request.json(&json!({ "url": "https://example.com/" })).send().await?.status() == 200);
    for id in ids {
        let request = app.client.delete(format!("{}/grabs/{id}", app.base())).bearer_auth(app.live());
        ensure!(request.send().await?.status() == 204);
    }
    ensure!(app.create(json!({ "url": app.site.url("/tiny") })).await?.0 == 200);
    app.finish().await
}
