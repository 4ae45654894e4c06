//! A service moves from SQLite to PostgreSQL with everything that it has.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use futures::{StreamExt as _, TryStreamExt as _};
use grabd::config::Config;
use grabd_tests::harness::{PASSWORD, TestApp};
use grabd_tests::visitor::Visitor;
use serde_json::json;

use crate::billing::cluster::PrivateDatabase;
use crate::monitors;

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    args: grabd::admin::Args,
}

/// Runs `grabd admin move` for the SQLite database in a data directory.
async fn move_to(data_dir: &Path, database: &str, to: &str) -> Result<bool> {
    let settings =
        BTreeMap::from([("data_dir", data_dir.display().to_string()), ("database.url", database.to_owned())]);
    let Cli { args } = Cli::try_parse_from(["admin", "move", "--to", to])?;
    grabd::admin::run(&Config::with(&settings)?, args).await
}

/// Grabs with idempotency keys: more rows of both tables than one statement copies, in one table with row numbers and one
/// without.
const MANY: u64 = 1_100;

/// Creates [`MANY`] grabs with the test key.
async fn create_many(app: &TestApp) -> Result<()> {
    let created = futures::stream::iter(0..MANY).map(|number| async move {
        let body = json!({ "url": format!("https://example.com/{number}") });
        let create = app.client.post(format!("{}/grabs", app.base())).bearer_auth(app.test()).json(&body);
        create.header("Idempotency-Key", number.to_string()).send().await?.error_for_status()?;
        anyhow::Ok(())
    });
    created.buffer_unordered(16).try_collect().await
}

#[tokio::test(flavor = "multi_thread")]
async fn moved_service_has_keys_users_credits_images_and_pending_grabs() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let data_dir = dir.path().display().to_string();
    let (target, other) = (PrivateDatabase::create().await, PrivateDatabase::create().await);
    let app = TestApp::start(5, &[("data_dir", &data_dir)]).await?;
    app.create_member("ada@example.com").await?;
    let webhook = json!({ "url": "https://hooks.example.com/grabd" });
    let created = app.client.post(format!("{}/webhooks", app.base())).bearer_auth(app.live()).json(&webhook).send();
    let webhook: serde_json::Value = created.await?.error_for_status()?.json().await?;
    let (grab, image) = app.capture("/tiny", json!({ "metadata": { "order": "1" }, "also": ["text"] })).await?;
    let monitor = json!({
        "capture": { "url": "https://93.184.215.14/", "headers": { "X-Token": "hidden" } }, "every": "30d",
    });
    let created = app.client.post(format!("{}/monitors", app.base())).bearer_auth(app.test()).json(&monitor).send();
    let monitor: serde_json::Value = created.await?.error_for_status()?.json().await?;
    let monitor_path = format!("/monitors/{}", monitor["id"].as_str().context("id")?);
    let monitor = monitors::ended(&app, app.test(), &monitor_path, None).await?;
    create_many(&app).await?;
    let running = move_to(dir.path(), "", &target.url()).await.err().context("a service that runs is not moved")?;
    ensure!(format!("{running:#}").contains("stop the service"), "{running:#}");
    let (key, test_key) = (app.live().to_owned(), app.test().to_owned());
    app.finish().await?;

    ensure!(move_to(dir.path(), "", &target.url()).await?);
    let again = move_to(dir.path(), "", &target.url()).await.err().context("a database that has teams")?;
    ensure!(format!("{again:#}").contains("already"), "{again:#}");
    let wrong = move_to(dir.path(), &target.url(), &other.url()).await.err().context("only SQLite is moved")?;
    ensure!(format!("{wrong:#}").contains("SQLite"), "{wrong:#}");

    let app = TestApp::start(0, &[("database.url", &target.url()), ("data_dir", &data_dir)]).await?;
    let (status, found) = app.get(&format!("/grabs/{}", grab["id"].as_str().context("id")?), &key).await?;
    ensure!(status == 200, "{status} {found}");
    for member in ["status", "created_at", "image_sha256", "metadata", "timings"] {
        ensure!(found[member] == grab[member], "{member}: {found} {grab}");
    }
    ensure!(
        found["files"][0]["bytes"] == grab["files"][0]["bytes"] && found["files"][0]["bytes"] != json!(null),
        "{found}"
    );
    let url = reqwest::Url::parse(found["image_url"].as_str().context("image_url")?)?;
    let url = format!("{}{}", app.service.public_url(), url.path());
    let file = app.client.get(url).send().await?.error_for_status()?.bytes().await?;
    ensure!(file == image, "another image");
    // Each key answers with the grab that it created before the move.
    for number in [0, MANY - 1] {
        let body = json!({ "url": format!("https://example.com/{number}") });
        let create = app.client.post(format!("{}/grabs", app.base())).bearer_auth(&test_key).json(&body);
        let replayed = create.header("Idempotency-Key", number.to_string()).send().await?;
        ensure!(replayed.headers().contains_key("idempotent-replayed"), "{number}: {replayed:?}");
    }
    let (_, usage) = app.get("/usage", &key).await?;
    ensure!(usage["credits"]["prepaid"] == json!(4), "{usage}");
    let path = format!("/webhooks/{}", webhook["id"].as_str().context("id")?);
    ensure!(app.get(&path, &key).await?.0 == 200);
    let (_, moved) = app.get(&monitor_path, &test_key).await?;
    ensure!(moved == monitor && moved["last_run"]["outcome"] == "first", "{moved} {monitor}");
    ensure!(app.service.store().credits().verify_ledger().await?.is_empty());
    // Ids that the database assigns go on after those that were copied, and triggers are on again.
    let body = json!({ "url": app.site.url("/tiny?after") });
    let captured = app.client.post(format!("{}/grabs", app.base())).bearer_auth(&key).json(&body).send().await?;
    ensure!(captured.status() == 200, "{}", captured.text().await?);
    let (_, usage) = app.get("/usage", &key).await?;
    ensure!(usage["credits"]["prepaid"] == json!(3), "{usage}");
    ensure!(app.service.store().credits().verify_ledger().await?.is_empty());
    let mut ada = Visitor::new(&app);
    ensure!(ada.sign_in("ada@example.com", PASSWORD, "/grabs").await?.status == 303);
    app.finish().await?;
    for database in [target, other] {
        database.drop_database().await;
    }
    Ok(())
}
