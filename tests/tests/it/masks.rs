//! What an image must not show, and what it must not be charged without, through the whole service.

use anyhow::{Context, Result};
use grabd_tests::harness::TestApp;
use image::GenericImageView as _;
use serde_json::{Value, json};

use super::files::credits;

/// Fails without charge, with a message that begins like this.
async fn fails(app: &TestApp, mut options: Value, html: &str, message: &str) -> Result<()> {
    let before = credits(app).await?;
    options["html"] = json!(html);
    let (status, answer) = app.create(options).await?;
    assert_eq!((status, &answer["error"]["code"]), (500, &json!("render_failed")), "{answer}");
    let seen = answer["error"]["message"].as_str().context("a message")?;
    assert!(seen.starts_with(message), "{seen}");
    assert_eq!(credits(app).await?, before, "{message}");
    Ok(())
}

/// Captures the document of the caller.
async fn capture(app: &TestApp, mut options: Value, html: &str) -> Result<(Value, image::DynamicImage)> {
    options["html"] = json!(html);
    let (status, grab) = app.create(options).await?;
    anyhow::ensure!(status == 200, "{status} {grab}");
    let url = grab["image_url"].as_str().context("image_url")?;
    let image = app.client.get(url).send().await?.error_for_status()?.bytes().await?;
    Ok((grab, image::load_from_memory(&image)?))
}

#[tokio::test(flavor = "multi_thread")]
async fn masks_cover_or_fail_without_charge() -> Result<()> {
    let app = TestApp::start(1, &[]).await?;
    let html = "<body style='margin:0'><div id=a style='width:90px;height:90px;background:red'></div>";
    fails(&app, json!({ "mask": ["#b"] }), html, "`mask` \"#b\" matches nothing on the page.").await?;
    let (_, image) = capture(&app, json!({ "mask": ["#a"] }), html).await?;
    assert_eq!(image.get_pixel(45, 45).0, [128, 128, 128, 255]);
    assert_eq!(credits(&app).await?, json!(0));
    for kind in ["html", "text", "markdown", "links", "elements", "marks", "pdf"] {
        let refused = app.create_refused(json!({ "html": html, "mask": ["#a"], "also": ["report", kind] })).await?;
        let message = refused.message;
        assert!(message.starts_with(&format!("`mask` must be left out where `also` has \"{kind}\"")), "{message}");
    }
    app.finish().await
}
