//! What an image must not show, and what it must not be charged without, through the whole service.

use anyhow::{Context, Result};
use grabd_tests::harness::TestApp;
use image::GenericImageView as _;
use serde_json::{Value, json};

use super::files::{credits, fetch, files};

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
    for kind in ["html", "text", "markdown", "links", "elements", "accessibility", "marks", "pdf", "mhtml", "har"] {
        let refused = app.create_refused(json!({ "html": html, "mask": ["#a"], "also": ["report", kind] })).await?;
        let message = refused.message;
        assert!(message.starts_with(&format!("`mask` must be left out where `also` has \"{kind}\"")), "{message}");
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_that_the_caller_does_not_accept_are_not_charged() -> Result<()> {
    let app = TestApp::start(2, &[]).await?;
    let html = "<h1 class=error>Not found</h1>";
    let visible = "The page shows an element that matches `fail_if_selector` \".error\".";
    fails(&app, json!({ "fail_if_selector": ".error" }), html, visible).await?;
    fails(&app, json!({ "fail_if_text": "not  FOUND" }), html, "The page shows the text of `fail_if_text`").await?;
    let missing = json!({ "wait_for_text": "Total", "timeout_ms": 4000 });
    fails(&app, missing, html, "`wait_for_text` \"Total\" did not appear in time.").await?;
    fails(&app, json!({ "fail_if_blank": true }), "<body>", "All of the image has one colour").await?;
    let missing = json!({ "wait_for_expression": "window.loaded", "timeout_ms": 4000 });
    fails(&app, missing, html, "`wait_for_expression` did not become true in time.").await?;
    let accepted = json!({
        "fail_if_selector": ".none", "fail_if_text": "Denied", "wait_for_text": "not found", "fail_if_blank": true,
        "wait_for_expression": "document.querySelector('h1')",
        "fail_on_request": [{ "url": "*/api/*", "status": 404 }, { "url": "*.js" }],
    });
    capture(&app, accepted, html).await?;
    let missing = json!({ "wait_for_signal": true, "timeout_ms": 4000 });
    fails(&app, missing, html, "`wait_for_signal`: the page neither set `window.grabReady = true` nor").await?;
    let ready = "<h1>Ready</h1><script>window.grabReady = true</script>";
    capture(&app, json!({ "wait_for_signal": true }), ready).await?;
    assert_eq!(credits(&app).await?, json!(0));
    for (name, value) in [
        ("fail_if_selector", json!("")),
        ("fail_if_text", json!("x".repeat(513))),
        ("fail_if_blank", json!(1)),
        ("fail_on_request", json!([{ "url": "*", "status": 304 }])),
        ("fail_on_request", json!([{ "status": "5xx" }])),
        ("wait_for_signal", json!("yes")),
    ] {
        let refused = app.create_refused(json!({ "html": html, name: value })).await?;
        anyhow::ensure!(refused.message.starts_with(&format!("`{name}` must be ")), "{refused:?}");
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn highlights_outline_elements_or_fail_without_charge() -> Result<()> {
    let app = TestApp::start(1, &[]).await?;
    let html =
        "<body style='margin:0'><div id=a style='position:absolute;left:50px;top:50px;width:90px;height:90px'></div>";
    let missing = json!({ "highlight": [{ "selector": "#a" }, { "selector": "#b" }] });
    fails(&app, missing, html, "`highlight` \"#b\" matches nothing on the page.").await?;
    let asked = json!({ "highlight": [{ "selector": "#a", "label": "Here", "color": "blue" }] });
    let (_, image) = capture(&app, asked, html).await?;
    assert_eq!((image.get_pixel(48, 90).0, image.get_pixel(90, 90).0), ([0, 0, 255, 255], [255; 4]));
    assert_eq!(credits(&app).await?, json!(0));
    for refused in [json!([{ "label": "Here" }]), json!([{ "selector": "#a", "color": "pink" }]), json!("#a")] {
        let refused = app.create_refused(json!({ "html": html, "highlight": refused })).await?;
        let allowed = "`highlight` must be an array of at most 20 objects, each with `selector`";
        anyhow::ensure!(refused.message.starts_with(allowed), "{refused:?}");
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn page_of_a_pdf_costs_one_credit_and_nothing_if_there_is_none() -> Result<()> {
    let app = TestApp::start(1, &[]).await?;
    let url = app.site.url("/leaflet.pdf");
    let refused = app.create_refused(json!({ "url": url, "pdf_page": 0 })).await?;
    assert_eq!(refused.message, "`pdf_page` must be an integer from 1 to 500; got 0.");
    let (status, answer) = app.create(json!({ "url": url, "pdf_page": 3 })).await?;
    assert_eq!((status, &answer["error"]["code"]), (500, &json!("render_failed")), "{answer}");
    assert_eq!(credits(&app).await?, json!(1));
    let (grab, image) = app.capture("/leaflet.pdf", json!({ "pdf_page": 2, "full_page": true })).await?;
    let image = image::load_from_memory(&image)?;
    assert_eq!((image.width(), image.height(), image.get_pixel(640, 640).0), (1280, 1280, [0, 255, 0, 255]));
    assert_eq!((&grab["title"], credits(&app).await?), (&json!("Leaflet"), json!(0)));
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn thumbnails_cost_nothing_more_and_are_deleted_with_the_image() -> Result<()> {
    let app = TestApp::start(1, &[]).await?;
    let html =
        "<body style='margin:0'><div style='height:300px;background:red'></div><div style='height:2000px'></div>";
    let asked =
        json!({ "full_page": true, "thumbnail": { "width": 200, "height": 100, "fit": "cover" }, "phash": true });
    let (grab, _) = capture(&app, asked, html).await?;
    assert_eq!(credits(&app).await?, json!(0));
    let listed = files(&grab);
    let [file] = listed[..] else { anyhow::bail!("{grab}") };
    assert_eq!((&file["kind"], &file["media_type"]), (&json!("thumbnail"), &json!("image/jpeg")));
    let url = file["url"].as_str().context("url")?;
    assert!(url.ends_with("/thumbnail.jpeg"), "{url}");
    let content = fetch(&app, url).await?.error_for_status()?.bytes().await?;
    let image = image::load_from_memory(&content)?;
    assert_eq!((image.dimensions(), &file["bytes"]), ((200, 100), &json!(content.len())));
    // The first 640 rows of the page are in it.
    let (upper, lower) = (image.get_pixel(100, 20).0, image.get_pixel(100, 80).0);
    assert!(upper[0] > 240 && upper[1] < 15 && lower[1] > 240, "{upper:?} {lower:?}");
    let path = format!("/grabs/{}", grab["id"].as_str().context("id")?);
    assert_eq!(app.get(&path, app.live()).await?.1["files"], grab["files"]);
    let deleted = app.client.delete(format!("{}{path}", app.base())).bearer_auth(app.live()).send().await?;
    assert_eq!((deleted.status().as_u16(), fetch(&app, url).await?.status().as_u16()), (204, 404));
    for (refused, message) in [
        (json!({ "width": 200 }), "`thumbnail` must be an object with `width`"),
        (json!("200,100"), "`thumbnail` must be an object with `width`"),
        (json!({ "width": 200, "height": 2000 }), "`thumbnail.height` must be an integer from 16 to 1024; got 2000."),
    ] {
        let refused = app.create_refused(json!({ "html": html, "thumbnail": refused })).await?;
        anyhow::ensure!(refused.message.starts_with(message), "{refused:?}");
    }

    // Placeholders have thumbnails as well.
    let body = json!({ "url": "https://example.com/", "thumbnail": { "width": 64, "height": 64 } });
    let request = app.client.post(format!("{}/grabs", app.base())).bearer_auth(app.test()).json(&body);
    let grab: Value = request.send().await?.json().await?;
    let url = files(&grab)[0]["url"].as_str().context("url")?;
    let content = fetch(&app, url).await?.error_for_status()?.bytes().await?;
    assert_eq!(image::load_from_memory(&content)?.dimensions(), (64, 36));
    app.finish().await
}
