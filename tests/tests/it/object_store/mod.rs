//! Images in an S3-compatible object store. Renderers are scripted, so that no browser is needed.

mod commands;
mod deletion;
mod delivery;
mod inside;
mod moving;
mod signed_uploads;
mod storage;
mod uploads;

use std::io::Cursor;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use grabd_domain::capture::FileKind;
use grabd_tests::harness::TestApp;
use grabd_tests::s3_server::S3Server;
use grabd_tests::scripted_renderer::ScriptedRenderer;
use serde_json::{Value, json};

/// A service whose images are in a bucket.
async fn start(credits: u32, overlay: &[(&'static str, &str)]) -> Result<(S3Server, TestApp)> {
    let server = S3Server::start().await?;
    let app = start_on(&server, credits, overlay).await?;
    Ok((server, app))
}

/// A service with the settings of a server, overridden by others.
async fn start_on(server: &S3Server, credits: u32, overlay: &[(&'static str, &str)]) -> Result<TestApp> {
    let settings = server.settings();
    let mut all: Vec<(&'static str, &str)> = settings.iter().map(|(key, value)| (*key, value.as_str())).collect();
    all.extend(overlay);
    TestApp::start_without_browser(credits, &all).await
}

/// An image file with a box of this colour.
fn png(colour: [u8; 3]) -> Bytes {
    let image = image::RgbImage::from_fn(320, 240, |x, y| match (x / 40, y / 40) {
        (2..4, 2..4) => image::Rgb(colour),
        (_, _) => image::Rgb([250; 3]),
    });
    let mut file = Cursor::new(Vec::new());
    image.write_to(&mut file, image::ImageFormat::Png).expect("it is encoded in memory");
    file.into_inner().into()
}

/// Captures a page with a scripted result. Returns the grab.
async fn capture(
    app: &TestApp,
    renderer: &mut ScriptedRenderer,
    options: Value,
    image: &Bytes,
    files: &[(FileKind, Bytes)],
) -> Result<Value> {
    let mut body = options;
    body["url"] = json!(app.site.url("/tiny"));
    let (created, accepted) = tokio::try_join!(app.create(body), renderer.render(image, files))?;
    ensure!(accepted && created.0 == 200, "{created:?}");
    Ok(created.1)
}

fn id(grab: &Value) -> Result<&str> {
    grab["id"].as_str().context("an id")
}

fn image_url(grab: &Value) -> Result<&str> {
    grab["image_url"].as_str().context("an image_url")
}

/// The name of the object with the image at this URL.
fn object_name(url: &str) -> Result<String> {
    Ok(format!("i/{}", url.split_once("/i/").context("the URL of an image")?.1))
}

async fn credits_left(app: &TestApp) -> Result<Value> {
    Ok(app.get("/usage", app.live()).await?.1["credits"]["total"].clone())
}
