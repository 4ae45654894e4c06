//! Images in further viewports, through the whole service.

use anyhow::{Context, Result};
use grabd_tests::harness::TestApp;
use image::GenericImageView as _;
use serde_json::{Value, json};

use super::files::{credits, fetch, files, stored};

fn url(file: &Value) -> Result<&str> {
    file["url"].as_str().context("url")
}

/// Fetches the images in further viewports and checks that they are as the grab says. Returns their bytes.
async fn check(app: &TestApp, grab: &Value, sizes: &[(u32, u32)]) -> Result<u64> {
    let mut bytes = 0;
    assert_eq!(files(grab).len(), sizes.len(), "{grab}");
    for (number, (file, (width, height))) in files(grab).into_iter().zip(sizes).enumerate() {
        assert_eq!((&file["kind"], &file["media_type"]), (&json!("viewport"), &json!("image/png")));
        assert_eq!(file["viewport"], json!({ "width": width, "height": height }), "{file}");
        assert!(url(file)?.ends_with(&format!("/viewport-{}.png", number + 1)), "{file}");
        let response = fetch(app, url(file)?).await?.error_for_status()?;
        assert_eq!(response.headers()["content-type"], "image/png");
        let content = response.bytes().await?;
        let (shown_width, shown_height) = image::load_from_memory(&content)?.dimensions();
        assert_eq!((&file["width"], &file["height"]), (&json!(shown_width), &json!(shown_height)));
        assert_eq!((shown_width, shown_height, &file["bytes"]), (*width, *height, &json!(content.len())));
        bytes += u64::try_from(content.len())?;
    }
    Ok(bytes)
}

#[tokio::test(flavor = "multi_thread")]
async fn further_viewports_cost_one_credit_together_and_are_deleted_with_the_image() -> Result<()> {
    let app = TestApp::start(2, &[]).await?;
    let viewports = json!([{ "width": 768, "height": 1024 }, { "width": 390, "height": 844 }]);
    let (grab, image) = app.capture("/tall", json!({ "viewports": viewports })).await?;
    assert_eq!(credits(&app).await?, json!(1));
    let bytes = check(&app, &grab, &[(768, 1024), (390, 844)]).await?;
    assert_eq!(app.service.store().grabs().stored_bytes(app.team.team).await?, u64::try_from(image.len())? + bytes);
    let path = format!("/grabs/{}", grab["id"].as_str().context("id")?);
    assert_eq!(app.get(&path, app.live()).await?.1["files"], grab["files"]);
    assert_eq!(stored(&app.data_dir().join("images"))?.len(), 3);
    let deleted = app.client.delete(format!("{}{path}", app.base())).bearer_auth(app.live()).send().await?;
    assert_eq!(deleted.status(), 204);
    for file in files(&grab) {
        assert_eq!(fetch(&app, url(file)?).await?.status(), 404, "{file}");
    }
    assert_eq!(stored(&app.data_dir().join("images"))?, Vec::<std::path::PathBuf>::new());
    assert_eq!(app.service.store().grabs().stored_bytes(app.team.team).await?, 0);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn placeholders_have_images_in_viewports_and_invalid_viewports_are_refused() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[]).await?;
    let create = async |viewports: Value| {
        let body = json!({ "url": "https://example.com/", "viewports": viewports });
        let request = app.client.post(format!("{}/grabs", app.base())).bearer_auth(app.test()).json(&body);
        let response = request.send().await?;
        anyhow::Ok((response.status().as_u16(), response.json::<Value>().await?))
    };
    let (status, grab) = create(json!([{ "width": 390, "height": 844 }])).await?;
    assert_eq!(status, 200, "{grab}");
    check(&app, &grab, &[(390, 844)]).await?;
    assert_eq!(create(json!([])).await?.1.get("files"), None);
    let size = json!({ "width": 390, "height": 844 });
    for refused in [
        json!([{ "width": 319, "height": 844 }]),
        json!([{ "width": 390 }]),
        Value::Array(vec![size; 7]),
        json!("390x844"),
    ] {
        let (status, answer) = create(refused.clone()).await?;
        assert_eq!((status, &answer["error"]["code"]), (400, &json!("invalid_viewport")), "{refused}: {answer}");
        let message = answer["error"]["message"].as_str().context("a message")?;
        assert!(
            message.starts_with("`viewports` must be an array of at most 6 objects, each with `width`"),
            "{message}"
        );
    }
    app.finish().await
}
