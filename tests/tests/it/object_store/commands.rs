//! Starting with a bucket, and the operator's commands.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use grabd::config::Config;
use grabd_tests::harness::TestApp;
use grabd_tests::s3_server::S3Server;
use grabd_tests::scripted_renderer::ScriptedRenderer;
use serde_json::{Value, json};

use super::{capture, image_url, png, start, start_on};

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    args: grabd::admin::Args,
}

/// Runs `grabd admin …` with these settings.
pub(super) async fn admin(
    server: &S3Server,
    data_dir: &Path,
    overlay: &[(&'static str, &str)],
    args: &[&str],
) -> Result<bool> {
    let mut settings: BTreeMap<&'static str, String> = server.settings().into();
    settings.insert("data_dir", data_dir.display().to_string());
    settings.extend(overlay.iter().map(|(key, value)| (*key, (*value).to_owned())));
    let Cli { args } = Cli::try_parse_from([&["admin"], args].concat())?;
    grabd::admin::run(&Config::with(&settings)?, args).await
}

#[tokio::test(flavor = "multi_thread")]
async fn service_does_not_start_without_its_bucket() -> Result<()> {
    let server = S3Server::start().await?;
    let failed = start_on(&server, 0, &[("images.secret_access_key", "wrong")]).await.err().context("it starts")?;
    let (text, expected) = (format!("{failed:#}"), "denies the request (403 SignatureDoesNotMatch)");
    assert!(text.contains(expected) && text.contains(&server.url()) && !text.contains("wrong"), "{text}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn backup_says_that_the_bucket_is_not_copied_and_is_restored_beside_it() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let (backup, restored) = (dir.path().join("backup"), dir.path().join("restored"));
    let (server, app) = start(2, &[]).await?;
    let mut renderer = ScriptedRenderer::attach(app.service.core()).await?;
    let image = png([200, 0, 0]);
    let grab = capture(&app, &mut renderer, json!({}), &image, &[]).await?;
    let path = backup.to_str().context("UTF-8")?;
    ensure!(admin(&server, &app.data_dir(), &[], &["backup", path]).await?);
    let manifest: Value = serde_json::from_slice(&std::fs::read(backup.join("manifest.json"))?)?;
    assert_eq!((&manifest["images"], &manifest["bucket"]), (&json!(0), &json!(server.url())), "{manifest}");
    app.finish().await?;

    ensure!(admin(&server, &restored, &[], &["restore", path]).await?);
    let restored = restored.display().to_string();
    let app: TestApp = start_on(&server, 0, &[("data_dir", &restored)]).await?;
    let name = image_url(&grab)?.split_once("/i/").context("a path")?.1;
    let shown = app.client.get(format!("{}/i/{name}", app.service.public_url())).send().await?;
    assert_eq!(shown.error_for_status()?.bytes().await?, image);
    app.finish().await
}
