//! Slices of an image, through the whole service.

use anyhow::{Context, Result};
use grabd_tests::agent::{Agent, MODERN};
use grabd_tests::harness::TestApp;
use image::{DynamicImage, GenericImage as _, GenericImageView as _};
use serde_json::{Value, json};

use super::files::{credits, fetch, files, stored};

fn url(file: &Value) -> Result<&str> {
    file["url"].as_str().context("url")
}

async fn delete(app: &TestApp, id: &str, key: &str) -> Result<()> {
    let deleted = app.client.delete(format!("{}/grabs/{id}", app.base())).bearer_auth(key).send().await?;
    assert_eq!(deleted.status(), 204);
    Ok(())
}

/// Fetches the slices of a grab and checks that together they are the image.
async fn check_slices(app: &TestApp, grab: &Value, image: &[u8]) -> Result<()> {
    let whole = image::load_from_memory(image)?;
    let mut joined = DynamicImage::new(whole.width(), whole.height(), whole.color());
    let mut y = 0;
    for (number, file) in files(grab).into_iter().enumerate() {
        assert_eq!((&file["kind"], &file["y"]), (&json!("slice"), &json!(y)), "{file}");
        assert!(url(file)?.ends_with(&format!("/slice-{:02}.png", number + 1)), "{file}");
        let response = fetch(app, url(file)?).await?.error_for_status()?;
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        assert_eq!((header("content-type").as_deref(), &file["media_type"]), (Some("image/png"), &json!("image/png")));
        assert_eq!(header("content-security-policy").as_deref(), Some("sandbox; default-src 'none'"));
        assert_eq!(header("content-disposition"), None, "it is shown as the image is");
        let content = response.bytes().await?;
        assert_eq!(file["bytes"], json!(content.len()));
        let slice = image::load_from_memory(&content)?;
        assert_eq!((slice.width(), json!(slice.height())), (whole.width(), file["height"].clone()));
        joined.copy_from(&slice, 0, y)?;
        y += slice.height();
    }
    assert_eq!(y, whole.height());
    assert!(joined == whole, "the slices are the image");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn slices_cost_one_credit_and_are_deleted_with_their_image() -> Result<()> {
    let app = TestApp::start(2, &[]).await?;
    let options = json!({ "full_page": true, "slice_height": 2000, "width": 640, "max_height": 6500 });
    let (grab, image) = app.capture("/tall", options).await?;
    assert_eq!(credits(&app).await?, json!(1));
    check_slices(&app, &grab, &image).await?;
    // The page has white rows everywhere but in its pictures and texts.
    assert_eq!(files(&grab).iter().map(|file| file["y"].clone()).collect::<Vec<_>>(), [0, 2000, 4000, 6000]);
    let slices: usize = files(&grab).iter().filter_map(|file| usize::try_from(file["bytes"].as_u64()?).ok()).sum();
    assert_eq!(app.service.store().grabs().stored_bytes(app.team.team).await?, (image.len() + slices) as u64);

    let image_key = grab["image_url"].as_str().context("image_url")?.rsplit_once('/').context("a path")?.1;
    let image_key = image_key.split('.').next().context("a key")?;
    let (first, second) = (url(files(&grab)[0])?, url(files(&grab)[1])?);
    assert!(!first.contains(image_key), "the URL of the image tells that of the slice");
    let (path, _) = first.rsplit_once('/').context("a path")?;
    for other in [format!("{path}/slice-02.png"), format!("{path}/slice-01.jpeg"), format!("{path}/page.html")] {
        assert_eq!(fetch(&app, &other).await?.status(), 404, "{other}");
    }
    assert_ne!(path, second.rsplit_once('/').context("a path")?.0, "each has a key of its own");

    let id = grab["id"].as_str().context("id")?;
    let (_, shown) = app.get(&format!("/grabs/{id}"), app.live()).await?;
    assert_eq!(shown["files"], grab["files"]);
    assert_eq!(stored(&app.data_dir().join("images"))?.len(), 5);
    delete(&app, id, app.live()).await?;
    for file in files(&grab) {
        assert_eq!(fetch(&app, url(file)?).await?.status(), 404, "{file}");
    }
    let left = stored(&app.data_dir().join("images"))?;
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(app.service.store().grabs().stored_bytes(app.team.team).await?, 0);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn headings_are_in_grabs_and_not_in_lists() -> Result<()> {
    let app = TestApp::start(1, &[]).await?;
    let html = "<h1 style='margin:0'>Prices &amp; plans</h1><div style='height:900px'></div>";
    let (status, grab) = app.create(json!({ "html": html, "slice_height": 300, "also": ["text"] })).await?;
    assert_eq!(status, 200, "{grab}");
    let shown: Vec<_> = files(&grab).iter().map(|file| (file["kind"].clone(), file["heading"].clone())).collect();
    let (slice, heading) = (json!("slice"), json!("Prices & plans"));
    assert_eq!(shown[0], (json!("text"), Value::Null));
    assert_eq!(
        (shown.len(), &shown[1].0, &shown[2..]),
        (4, &slice, &[(slice.clone(), heading.clone()), (slice.clone(), heading)][..])
    );
    assert!(files(&grab)[0].get("y").is_none());
    let (_, listed) = app.get("/grabs", app.live()).await?;
    let mut without = grab["files"].clone();
    for file in without.as_array_mut().context("files")? {
        file.as_object_mut().context("a file")?.shift_remove("heading");
    }
    assert_eq!(listed["data"][0]["files"], without);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn placeholders_have_slices_and_invalid_heights_are_refused() -> Result<()> {
    let app = TestApp::start_without_browser(1, &[]).await?;
    for format in ["png", "jpeg", "webp"] {
        let request = app.client.post(format!("{}/grabs", app.base())).bearer_auth(app.test());
        let body = json!({ "url": "https://example.com/", "full_page": true, "slice_height": 1000, "format": format });
        let grab: Value = request.json(&body).send().await?.json().await?;
        assert!(files(&grab).len() > 3, "{grab}");
        let mut rows = 0;
        for file in files(&grab) {
            let content = fetch(&app, url(file)?).await?.error_for_status()?.bytes().await?;
            let (_, height) = image::load_from_memory(&content)?.dimensions();
            assert_eq!((&file["bytes"], &file["height"]), (&json!(content.len()), &json!(height)), "{format}");
            rows += height;
        }
        assert_eq!((&grab["image_height"], &files(&grab)[1]["heading"]), (&json!(rows), &json!("TEST")));
        let id = grab["id"].as_str().context("id")?;
        delete(&app, id, app.test()).await?;
        assert_eq!(fetch(&app, url(files(&grab)[0])?).await?.status(), 404);
    }
    for seen in [json!(255), json!(8001), json!("tall"), json!(300.5)] {
        let (status, answer) = app.create(json!({ "url": app.site.url("/tiny"), "slice_height": seen })).await?;
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert_eq!((status, &answer["error"]["code"]), (400, &json!("bad_request")), "{answer}");
        assert!(message.contains("`slice_height` must be an integer from 256 to 8000"), "{message}");
    }
    // A repeated create gets the same slices, and one with another height is another request.
    let create = async |slice_height: u32| {
        let body = json!({ "url": "https://example.com/", "slice_height": slice_height });
        let request = app.client.post(format!("{}/grabs", app.base())).bearer_auth(app.test()).json(&body);
        let response = request.header("idempotency-key", "slices").send().await?;
        anyhow::Ok((response.status().as_u16(), response.json::<Value>().await?))
    };
    let first = create(300).await?;
    assert_eq!((first.0, files(&first.1).len()), (200, 3), "{first:?}");
    assert_eq!(create(300).await?, first);
    let (status, other) = create(400).await?;
    assert_eq!((status, &other["error"]["code"]), (400, &json!("idempotency_mismatch")));
    assert_eq!(credits(&app).await?, json!(1));
    app.finish().await
}

/// The texts of a result, and the sizes of its images.
type Shown = (Vec<String>, Vec<(u32, u32)>);

fn shown(result: &Value) -> Result<Shown> {
    use base64::Engine as _;
    let (mut texts, mut sizes) = (Vec::new(), Vec::new());
    for block in result["content"].as_array().context("content")? {
        if let Some(text) = block["text"].as_str() {
            texts.push(text.to_owned());
        } else if let Some(data) = block["data"].as_str() {
            let file = base64::prelude::BASE64_STANDARD.decode(data)?;
            sizes.push(image::load_from_memory(&file)?.dimensions());
        }
    }
    Ok((texts, sizes))
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_see_tall_images_in_readable_parts() -> Result<()> {
    let app = TestApp::start(3, &[]).await?;
    let agent = Agent::new(&app, app.live(), MODERN);
    let whole = agent.call("create_grab", json!({ "url": app.site.url("/tall"), "full_page": true })).await?;
    let (texts, sizes) = shown(whole.result()?)?;
    // The last one ends above a picture.
    let first = [(1280, 1280), (1280, 1280), (1280, 1280), (1280, 1260)];
    assert_eq!(sizes, first);
    assert_eq!((&*texts[0], &*texts[3]), ("Rows 0 to 1279 of 16384:", "Rows 3840 to 5099 of 16384:"));
    assert_eq!(texts[4], "For the rest, call get_grab with include_image true and from_row 5100, or fetch image_url.");
    assert!(whole.body["result"].to_string().len() < 900_000);
    let id = whole.structured()?["id"].as_str().context("an id")?;
    let last = agent.call("get_grab", json!({ "id": id, "include_image": true, "from_row": 15_000 })).await?;
    let (texts, sizes) = shown(last.result()?)?;
    assert_eq!(
        (&*texts[0], texts.iter().any(|text| text.contains("For the rest"))),
        ("Rows 15000 to 16279 of 16384:", false)
    );
    assert_eq!(sizes, [(1280, 1280), (1280, 104)]);
    let beyond = agent.call("get_grab", json!({ "id": id, "include_image": true, "from_row": 16_383 })).await?;
    assert_eq!(shown(beyond.result()?)?.1, [(1280, 1)]);

    // Slices that can be read are shown as they are, with their headings.
    let html = "<h1 style='margin:0'>Prices</h1><div style='height:4000px;background:linear-gradient(red,blue)'></div>";
    let sliced = json!({ "html": html, "full_page": true, "slice_height": 1400, "include_image": true });
    let sliced = agent.call("create_grab", sliced).await?;
    let (texts, sizes) = shown(sliced.result()?)?;
    let slices = files(sliced.structured()?);
    assert_eq!((slices.len(), sizes.len()), (3, 3), "{slices:?}");
    let height = &sliced.structured()?["image_height"];
    assert_eq!(texts[0], format!("Rows 0 to 1399 of {height}:"));
    assert_eq!(texts[1], format!("Rows 1400 to 2799 of {height}, under the heading \"Prices\":"));
    let blocks = sliced.result()?["content"].as_array().context("content")?;
    let links = blocks.iter().filter(|block| block["type"] == "resource_link").count();
    assert_eq!(links, 1, "only that of the image");

    // Slices that are too tall to be read are not.
    let tall = json!({ "url": app.site.url("/tall"), "full_page": true, "slice_height": 8000 });
    let (_, sizes) = shown(agent.call("create_grab", tall).await?.result()?)?;
    assert_eq!(sizes, first);
    assert_eq!(credits(&app).await?, json!(0));
    app.finish().await
}
