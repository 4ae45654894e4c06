//! `evidence`: the signed package about a capture, through the whole service.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, ensure};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use clap::Parser;
use grabd::config::Config;
use grabd_evidence::{PublicKey, Verified, sha256, verify};
use grabd_tests::harness::{ALLOWED, TestApp};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use super::files::{credits, fetch, files, stored};

/// The value of a header that only the target may see.
const HIDDEN: &str = "hidden-6f2a";

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    args: grabd::admin::Args,
}

/// The package of a grab.
async fn package(app: &TestApp, grab: &Value) -> Result<Vec<u8>> {
    let file = files(grab).into_iter().find(|file| file["kind"] == "evidence").context("evidence")?;
    assert_eq!(file["media_type"], "application/zip");
    let url = file["url"].as_str().context("url")?;
    assert!(url.ends_with("/evidence.zip"), "{url}");
    let response = fetch(app, url).await?.error_for_status()?;
    assert_eq!(response.headers()["content-disposition"], "attachment; filename=\"evidence.zip\"");
    let package = response.bytes().await?.to_vec();
    assert_eq!(json!(package.len()), file["bytes"], "{file}");
    Ok(package)
}

/// The keys that the service publishes.
async fn published(app: &TestApp) -> Result<Vec<PublicKey>> {
    let url = format!("{}/.well-known/grabd-evidence-keys", app.service.public_url());
    let response = app.client.get(url).send().await?.error_for_status()?;
    assert_eq!(response.headers()["cache-control"], "public, max-age=300");
    assert_eq!(response.headers()["access-control-allow-origin"], "*");
    Ok(PublicKey::read_all(&response.text().await?).unwrap_or_default())
}

async fn create_test(app: &TestApp, body: &Value) -> Result<(u16, Value)> {
    let response = app.client.post(format!("{}/grabs", app.base())).bearer_auth(app.test()).json(body).send().await?;
    Ok((response.status().as_u16(), response.json().await?))
}

#[tokio::test(flavor = "multi_thread")]
async fn evidence_is_signed_and_stored_and_deleted_with_its_image() -> Result<()> {
    let app = TestApp::start(3, &[]).await?;
    assert_eq!(published(&app).await?, Vec::new());
    let (grab, image) = app.capture("/tiny", json!({ "evidence": true, "headers": { "X-Token": HIDDEN } })).await?;
    assert_eq!(credits(&app).await?, json!(2));
    assert_eq!(files(&grab).len(), 1, "the other files are in the package only: {grab}");
    let evidence = package(&app, &grab).await?;
    let Verified { manifest, key, has_timestamp } = verify(&evidence)?;
    assert_eq!((published(&app).await?, has_timestamp), (vec![key], false));
    assert_eq!((json!(manifest.grab_id), manifest.test), (grab["id"].clone(), false));
    assert_eq!((&*manifest.requested_url, manifest.http_status), (&*app.site.url("/tiny"), Some(200)));
    assert_eq!(json!(manifest.final_url), grab["final_url"]);
    assert_eq!((json!(manifest.created_at), &manifest.tls), (grab["created_at"].clone(), &None));
    assert_eq!((&manifest.options["headers"], &manifest.options["evidence"]), (&json!(true), &json!(true)));
    assert!(manifest.browser.is_some_and(|browser| browser.starts_with("Chromium ")));
    let names: Vec<&str> = manifest.files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["image.png", "page.mhtml", "report.json", "headers.json"]);
    assert_eq!(json!(manifest.files[0].sha256), grab["image_sha256"]);
    assert_eq!(manifest.files[0].sha256, sha256(&image));
    let text = String::from_utf8_lossy(&evidence).to_ascii_lowercase();
    assert!(!text.contains(HIDDEN) && text.contains("content-type"));
    // Everything that is stored is counted, and nothing else is stored.
    let bytes = u64::try_from(image.len() + evidence.len())?;
    assert_eq!(app.service.store().grabs().stored_bytes(app.team.team).await?, bytes);
    assert_eq!(stored(&app.data_dir().join("images"))?.len(), 2);

    // The files that were asked for are those in the package.
    let (grab, _) = app.capture("/tiny", json!({ "evidence": true, "also": ["report", "mhtml"] })).await?;
    let kinds: Vec<_> = files(&grab).iter().map(|file| file["kind"].clone()).collect();
    assert_eq!(kinds, ["mhtml", "report", "evidence"]);
    let manifest = verify(&package(&app, &grab).await?)?.manifest;
    for (file, packed) in files(&grab).into_iter().zip(&manifest.files[1..3]) {
        let content = fetch(&app, file["url"].as_str().context("url")?).await?.bytes().await?;
        assert_eq!(sha256(&content), packed.sha256, "{file}");
    }
    let path = format!("{}/grabs/{}", app.base(), grab["id"].as_str().context("id")?);
    assert_eq!(app.client.delete(path).bearer_auth(app.live()).send().await?.status(), 204);
    let url = files(&grab)[2]["url"].as_str().context("url")?;
    assert_eq!(fetch(&app, url).await?.status(), 404);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn evidence_that_cannot_be_made_fails_the_grab_uncharged() -> Result<()> {
    let app = TestApp::start(3, &[]).await?;
    let failed = app.create_refused(json!({ "url": app.site.url("/leaflet.pdf"), "evidence": true })).await?;
    assert_eq!(failed.summary().1, "render_failed");
    assert!(failed.message.contains("`evidence`"), "{}", failed.message);
    assert_eq!(credits(&app).await?, json!(3));
    for (other, value) in [("mask", json!(["h1"])), ("html", json!("<p>mine"))] {
        let mut body = json!({ "evidence": true, other: value });
        if other == "mask" {
            body["url"] = json!(app.site.url("/tiny"));
        }
        let refused = app.create_refused(body).await?;
        assert_eq!(refused.message, format!("`evidence` must be left out where `{other}` is used; got true."));
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn evidence_of_a_placeholder_says_that_it_is_a_test_and_keys_are_rotated() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[]).await?;
    let body = json!({ "url": "https://example.com/", "evidence": true });
    let (status, grab) = create_test(&app, &body).await?;
    assert_eq!(status, 200, "{grab}");
    let first = package(&app, &grab).await?;
    let Verified { manifest, key, .. } = verify(&first)?;
    assert!(manifest.test);
    assert_eq!((json!(manifest.grab_id), &*manifest.requested_url), (grab["id"].clone(), "https://example.com/"));
    assert_eq!(package(&app, &grab).await?, first, "it is the same whenever it is read");

    let settings = BTreeMap::from([("data_dir", app.data_dir().display().to_string())]);
    for command in ["keys", "rotate", "keys"] {
        let Cli { args } = Cli::try_parse_from(["admin", "evidence", command])?;
        ensure!(grabd::admin::run(&Config::with(&settings)?, args).await?, "{command}");
    }
    let keys = published(&app).await?;
    assert_eq!((keys.len(), keys[1]), (2, key));
    let (_, later) = create_test(&app, &body).await?;
    assert_eq!(verify(&package(&app, &later).await?)?.key, keys[0]);
    let (_, plain) = create_test(&app, &json!({ "url": "https://example.com/", "evidence": false })).await?;
    assert_eq!(plain.get("files"), None);
    app.finish().await
}

/// An authority that has a time stamp for every request, or fails.
async fn authority(is_broken: Arc<AtomicBool>) -> Result<(SocketAddr, AbortOnDropHandle<()>)> {
    let listener = TcpListener::bind(SocketAddr::new(ALLOWED, 0)).await?;
    let address = listener.local_addr()?;
    let router = Router::new().fallback(stamp).with_state(is_broken);
    let task = TaskTracker::new().spawn(async move {
        // Ends when the task is aborted.
        drop(axum::serve(listener, router).await);
    });
    Ok((address, AbortOnDropHandle::new(task)))
}

/// The reply with the hash of the request, which is after 24 bytes.
async fn stamp(State(is_broken): State<Arc<AtomicBool>>, request: Bytes) -> Response {
    let Some(digest) = request.get(24..56).filter(|_| !is_broken.load(Ordering::SeqCst)) else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let head = [0x30, 0x29, 0x30, 0x03, 0x02, 0x01, 0x00, 0x30, 0x22, 0x04, 0x20];
    [head.as_slice(), digest].concat().into_response()
}

#[tokio::test(flavor = "multi_thread")]
async fn time_stamp_is_added_and_its_failure_is_a_warning() -> Result<()> {
    let is_broken = Arc::new(AtomicBool::new(false));
    let (address, _authority) = authority(Arc::clone(&is_broken)).await?;
    let url = format!("http://{address}/tsa");
    let app = TestApp::start(3, &[("evidence.timestamp_url", url.as_str())]).await?;
    let (grab, _) = app.capture("/tiny", json!({ "evidence": true })).await?;
    assert!(verify(&package(&app, &grab).await?)?.has_timestamp, "{grab}");
    is_broken.store(true, Ordering::SeqCst);
    let (grab, _) = app.capture("/tiny", json!({ "evidence": true })).await?;
    assert!(!verify(&package(&app, &grab).await?)?.has_timestamp);
    let warnings = grab["warnings"].as_array().context("warnings")?;
    assert!(warnings.contains(&json!("evidence_timestamp_failed")), "{grab}");
    assert_eq!(credits(&app).await?, json!(1));
    app.finish().await
}
