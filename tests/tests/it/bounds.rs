//! What a page or a customer sends is bounded where it enters, and a full disk refuses creates.

use anyhow::{Context, Result, ensure};
use grabd_domain::limits::PAGE_URL_BYTES;
use grabd_tests::harness::TestApp;
use grabd_tests::site::hostile::pages;
use sea_orm::{ConnectionTrait, Database, Statement};
use serde_json::json;

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
    let manual = include_str!("../../../docs/OPERATING.md");
    let rows =
        manual.lines().skip_while(|line| !line.starts_with("| Table |")).take_while(|line| line.starts_with('|'));
    let documented: Vec<&str> = rows.flat_map(|row| row.split('`').skip(1).step_by(2)).collect();
    ensure!(tables.len() > 30, "{} tables", tables.len());
    for table in tables {
        let table: String = table.try_get_by_index(0)?;
        ensure!(documented.contains(&table.as_str()), "`{table}` is not in the list of bounds of docs/OPERATING.md");
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn creates_are_refused_while_the_disk_is_almost_full() -> Result<()> {
    // The disk that has this build has less free space. That of temporary files may be a part of the memory.
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let images = format!("file://{}", directory.path().display());
    let app =
        TestApp::start_without_browser(5, &[("retention.min_free_percent", "99"), ("images.url", images.as_str())])
            .await?;
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
    let ready = app.client.get(format!("http://{}/readyz", app.service.http())).send().await?;
    ensure!(ready.status() == 503);
    let reason = ready.text().await?;
    ensure!(reason.contains("disk (") && reason.contains("MiB required"), "{reason}");
    let metrics = app.client.get(format!("http://{}/metrics", app.service.metrics())).send().await?.text().await?;
    let free = metrics.lines().find_map(|line| line.strip_prefix("grabd_images_free_bytes "));
    ensure!(free.context("a sample")?.parse::<f64>()? > 0.0, "{metrics}");
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
