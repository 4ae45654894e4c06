//! Images through the whole service.

use anyhow::{Context, Result, ensure};
use grabd::allocator;
use grabd_tests::agent::{Agent, MODERN};
use grabd_tests::harness::TestApp;
use grabd_tests::pixels;
use grabd_tests::site::images;
use serde_json::{Value, json};
use tokio::process::Command;

#[tokio::test(flavor = "multi_thread")]
async fn formats_sizes_and_full_pages_are_correct() -> Result<()> {
    let app = TestApp::start(20, &[]).await?;
    for (format, magic) in [("png", &b"\x89PNG"[..]), ("jpeg", &b"\xff\xd8\xff"[..]), ("webp", &b"RIFF"[..])] {
        let (grab, image) = app.capture("/article", json!({ "format": format, "width": 1000, "height": 500 })).await?;
        assert!(image.starts_with(magic), "{format}");
        let decoded = image::load_from_memory(&image)?;
        assert_eq!((decoded.width(), decoded.height()), (1000, 500));
        assert_eq!((&grab["image_width"], &grab["image_height"]), (&json!(1000), &json!(500)));
        assert_eq!(grab["format"], json!(format));
    }
    let (_, image) = app.capture("/article", json!({ "format": "png" })).await?;
    let decoded = pixels::decode(&image);
    for patch in images::article_patches().chain(images::ARTICLE_MARKS).filter(|patch| patch.is_inside(&decoded)) {
        pixels::assert_shows(&decoded, patch, 2);
    }
    let (grab, image) = app.capture("/tall", json!({ "full_page": true, "width": 640, "format": "jpeg" })).await?;
    assert_eq!((&grab["height"], &grab["truncated"]), (&json!(3240), &json!(true)));
    assert_eq!(grab["image_height"], json!(16384));
    let decoded = pixels::decode(&image);
    assert_eq!(decoded.height(), 16384);
    for patch in images::tall_patches().filter(|patch| patch.is_inside(&decoded)) {
        pixels::assert_shows(&decoded, patch, 12);
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn image_above_the_size_limit_fails_uncharged_with_a_remedy() -> Result<()> {
    let app = TestApp::start(2, &[("capture.image_max_megabytes", "1")]).await?;
    let noise = |options: Value| {
        let mut body = options;
        body["url"] = json!(app.site.url("/noise"));
        app.create(body)
    };
    let (status, failed) = noise(json!({})).await?;
    let message = failed["error"]["message"].as_str().unwrap_or_default();
    assert_eq!((status, &failed["error"]["code"]), (500, &json!("render_failed")), "{failed}");
    assert!(message.contains("MB; at most 1 MB are allowed") && message.contains("jpeg"), "{failed}");
    let (_, usage) = app.get("/usage", app.live()).await?;
    assert_eq!(usage["credits"]["total"], json!(2), "{usage}");
    let (status, done) = noise(json!({ "format": "jpeg", "quality": 20, "width": 640, "height": 480 })).await?;
    assert_eq!(status, 200, "{done}");
    let (_, usage) = app.get("/usage", app.live()).await?;
    assert_eq!(usage["credits"]["total"], json!(1), "{usage}");
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn parallel_previews_of_a_large_image_all_answer_within_the_memory() -> Result<()> {
    // The service runs with this setting. Without it, freed images stay in heaps, and the peak depends on how many threads
    // have had one.
    let (name, bytes) = allocator::THRESHOLD;
    if std::env::var_os(name).is_none() {
        let test = "images::parallel_previews_of_a_large_image_all_answer_within_the_memory";
        let mut again = Command::new(std::env::current_exe()?);
        again.args(["--exact", test, "--nocapture"]).env(name, bytes).kill_on_drop(true);
        let output = again.output().await?;
        let [stdout, stderr] = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        ensure!(output.status.success() && stdout.contains(" 1 passed"), "{stdout}{stderr}");
        return Ok(());
    }
    let app = TestApp::start(1, &[("capture.image_memory_megabytes", "128")]).await?;
    let (grab, image) = app.capture("/noise", json!({ "full_page": true })).await?;
    assert!(image.len() > 6 << 20, "{}", image.len());
    let agent = Agent::new(&app, app.live(), MODERN);
    let before = peak_bytes()?;
    let get = || agent.call("get_grab", json!({ "id": grab["id"], "include_image": true }));
    let answers = futures::future::try_join_all((0..24).map(|_| get())).await?;
    let mut previews = 0;
    for answer in &answers {
        let first = &answer.result()?["content"][0];
        match first["type"].as_str() {
            Some("image") => previews += 1,
            _ => assert!(first["text"].as_str().is_some_and(|text| text.contains("image_url")), "{first}"),
        }
    }
    assert!(previews > 0);
    let grown = peak_bytes()? - before;
    // The answers of this client and of the service are not counted in the budget. With forty calls, it was 72 to 79 MiB, and
    // 1,272 with forty scalings at once and a budget that is never used up.
    let limit = (128 + 64) << 20;
    assert!(grown < limit, "{grown} bytes");
    app.finish().await
}

/// The largest amount of memory that this process, which is also the service, has had so far, in bytes.
fn peak_bytes() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("the peak")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? << 10)
}
