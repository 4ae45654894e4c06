//! A backup is made while the service runs, and is a working service when it is restored.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use grabd::config::Config;
use grabd_tests::harness::TestApp;
use serde_json::json;

use crate::billing::cluster::PrivateDatabase;

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    args: grabd::admin::Args,
}

/// Runs `grabd admin …` with the settings of a service.
async fn admin(data_dir: &Path, database: &str, args: &[&str]) -> Result<bool> {
    let settings =
        BTreeMap::from([("data_dir", data_dir.display().to_string()), ("database.url", database.to_owned())]);
    let Cli { args } = Cli::try_parse_from([&["admin"], args].concat())?;
    grabd::admin::run(&Config::with(&settings)?, args).await
}

/// Backs up a service with the database at `from`, and restores it with the empty one at `to`.
async fn assert_restored(from: &str, to: &str) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let (backup, restored) = (dir.path().join("backup"), dir.path().join("restored"));
    let path = backup.to_str().context("UTF-8")?;
    let app = TestApp::start(5, &[("database.url", from)]).await?;
    let (grab, image) = app.capture("/tiny", json!({})).await?;
    let team = app.team.team;
    ensure!(admin(&app.data_dir(), from, &["team", "limits", &team.to_string(), "--set", "keys=7"]).await?);
    ensure!(admin(&app.data_dir(), from, &["backup", path]).await?);
    let (later, _) = app.capture("/tiny", json!({})).await?;
    let again = admin(&app.data_dir(), from, &["backup", path]).await.err().context("a second backup")?;
    ensure!(format!("{again:#}").contains("is not empty"), "{again:#}");
    // A service that runs is not overwritten.
    ensure!(admin(&app.data_dir(), from, &["restore", path]).await.is_err());
    let key = app.live().to_owned();
    app.finish().await?;

    ensure!(admin(&restored, to, &["restore", path]).await?);
    let again = admin(&restored, to, &["restore", path]).await.err().context("a second restoration")?;
    ensure!(format!("{again:#}").contains("empty"), "{again:#}");
    let restored = restored.display().to_string();
    let app = TestApp::start(0, &[("database.url", to), ("data_dir", &restored)]).await?;
    let (status, found) = app.get(&format!("/grabs/{}", grab["id"].as_str().context("id")?), &key).await?;
    ensure!((status, &found["status"]) == (200, &json!("done")), "{status} {found}");
    let url = found["image_url"].as_str().context("image_url")?;
    let file = app.client.get(url).send().await?.error_for_status()?.bytes().await?;
    ensure!(file == image, "another image");
    let later = app.get(&format!("/grabs/{}", later["id"].as_str().context("id")?), &key).await?;
    ensure!(later.0 == 404, "made after the backup: {later:?}");
    app.capture("/tiny", json!({})).await.err().context("the new team of the test has no credits")?;
    let (_, usage) = app.get("/usage", &key).await?;
    ensure!(usage["credits"]["prepaid"] == json!(4), "{usage}");
    let limits = app.service.store().limits().team_limits(team).await?;
    ensure!(limits.iter().map(|stored| stored.value).collect::<Vec<_>>() == [7], "{limits:?}");
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn restored_backup_is_a_working_service_on_sqlite() -> Result<()> {
    assert_restored("", "").await
}

#[tokio::test(flavor = "multi_thread")]
async fn restored_backup_is_a_working_service_on_postgres() -> Result<()> {
    let (from, to) = (PrivateDatabase::create().await, PrivateDatabase::create().await);
    assert_restored(&from.url(), &to.url()).await?;
    for database in [from, to] {
        database.drop_database().await;
    }
    Ok(())
}
