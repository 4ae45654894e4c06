//! The image in a result, and the size limit of the result.

use anyhow::{Context, Result};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use grabd_tests::agent::{Agent, MODERN, McpResponse};
use grabd_tests::harness::TestApp;
use image::GenericImageView;
use serde_json::json;

/// The image in a result: media type, bytes and dimensions.
fn image_block(answer: &McpResponse) -> Result<(String, Vec<u8>, (u32, u32))> {
    let block = &answer.result()?["content"][0];
    assert_eq!(block["annotations"], json!({ "audience": ["user", "assistant"], "priority": 1.0 }));
    let bytes = BASE64_STANDARD.decode(block["data"].as_str().context("data")?)?;
    let size = image::load_from_memory(&bytes)?.dimensions();
    Ok((block["mimeType"].as_str().unwrap_or_default().to_owned(), bytes, size))
}

#[tokio::test(flavor = "multi_thread")]
async fn small_images_are_included_as_files_and_large_ones_as_previews() -> Result<()> {
    let app = TestApp::start(10, &[]).await?;
    let agent = Agent::new(&app, app.live(), MODERN);
    let keep = std::env::var_os("GRABD_TEST_KEEP_PICTURES");
    for (path, options, media_type, expected) in [
        ("/tiny", json!({ "width": 1280, "height": 720 }), "image/png", (1280, 720)),
        ("/tiny", json!({ "format": "webp" }), "image/webp", (1280, 720)),
        ("/article", json!({ "format": "jpeg" }), "image/jpeg", (1280, 720)),
        // Images with a side of more than 1568 pixels are replaced by a preview of 1280 pixels.
        ("/tiny", json!({ "width": 1920, "height": 1080 }), "image/jpeg", (1280, 720)),
    ] {
        let mut arguments = options.clone();
        arguments["url"] = json!(app.site.url(path));
        let answer = agent.call("create_grab", arguments).await?;
        let (seen, bytes, size) = image_block(&answer)?;
        let grab = answer.structured()?;
        assert_eq!(seen, media_type, "{path} {options}");
        assert!(answer.body["result"].to_string().len() < 900_000 && bytes.len() <= 600_000);
        assert!(size.0.max(size.1) <= 1568, "{size:?}");
        assert_eq!(size, expected, "{path} {options}");
        // The URL leads to the full image.
        let file = app.client.get(grab["image_url"].as_str().context("an address")?).send().await?.bytes().await?;
        let (width, height) = image::load_from_memory(&file)?.dimensions();
        assert_eq!((&grab["image_width"], &grab["image_height"]), (&json!(width), &json!(height)));
        assert_eq!(file.as_ref() == bytes.as_slice(), width.max(height) <= 1568, "either the file itself or a preview");
        if let Some(keep) = &keep {
            let name = format!(
                "{}-{width}x{height}.{}",
                path.trim_start_matches('/'),
                media_type.trim_start_matches("image/")
            );
            std::fs::write(std::path::Path::new(keep).join(name), &bytes)?;
        }
    }
    // A deleted image is not included either.
    let grab = agent.call("create_grab", json!({ "url": app.site.url("/tiny") })).await?;
    let id = grab.structured()?["id"].as_str().context("an id")?;
    let delete = app.client.delete(format!("{}/grabs/{id}", app.base())).bearer_auth(app.live());
    delete.send().await?.error_for_status()?;
    let gone = agent.call("get_grab", json!({ "id": id, "include_image": true })).await?;
    assert_eq!(
        (&gone.structured()?["image_url"], gone.result()?["content"].as_array().map(Vec::len)),
        (&json!(null), Some(1))
    );
    app.finish().await
}
