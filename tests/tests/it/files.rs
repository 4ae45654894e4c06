//! Attachments, and HTML documents of the caller, through the whole service.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use grabd_tests::agent::{Agent, MODERN};
use grabd_tests::harness::TestApp;
use reqwest::Response;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

const KINDS: [&str; 8] = ["html", "text", "markdown", "links", "mhtml", "pdf", "report", "har"];

/// In every document of these tests, and nowhere else.
const HIDDEN: &str = "hidden-value";

/// Requests a file by its URL, which for placeholders is a path.
pub(super) async fn fetch(app: &TestApp, url: &str) -> Result<Response> {
    let origin = if url.starts_with('/') { app.service.public_url() } else { "" };
    Ok(app.client.get(format!("{origin}{url}")).send().await?)
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// The attachments of a grab.
pub(super) fn files(grab: &Value) -> Vec<&Value> {
    grab["files"].as_array().into_iter().flatten().collect()
}

/// All files below a directory.
pub(super) fn stored(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        match path.is_dir() {
            true => found.extend(stored(&path)?),
            false => found.push(path),
        }
    }
    Ok(found)
}

/// The credits that the team has left.
pub(super) async fn credits(app: &TestApp) -> Result<Value> {
    Ok(app.get("/usage", app.live()).await?.1["credits"]["total"].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn files_cost_one_credit_and_are_deleted_with_their_image() -> Result<()> {
    let app = TestApp::start(3, &[]).await?;
    let (grab, image) = app.capture("/tiny", json!({ "also": KINDS })).await?;
    assert_eq!(credits(&app).await?, json!(2));
    let digest: String = Sha256::digest(&image).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(grab["image_sha256"], json!(digest));
    assert_eq!(files(&grab).iter().map(|file| file["kind"].as_str()).collect::<Vec<_>>(), KINDS.map(Some));

    let image_key = grab["image_url"].as_str().context("image_url")?.rsplit_once('/').context("a path")?.1;
    let image_key = image_key.split('.').next().context("a key")?;
    for file in files(&grab) {
        let url = file["url"].as_str().context("url")?;
        assert!(!url.contains(image_key), "the URL of the image tells that of the file: {url}");
        let response = fetch(&app, url).await?;
        let (status, headers) = (response.status(), response.headers().clone());
        let content = response.bytes().await?;
        assert_eq!((status.as_u16(), json!(content.len())), (200, file["bytes"].clone()), "{file}");
        assert_eq!(json!(header(&headers, "content-type")), file["media_type"]);
        assert_eq!(header(&headers, "x-content-type-options"), "nosniff");
        assert_eq!(header(&headers, "content-security-policy"), "sandbox; default-src 'none'");
        let is_saved = ["html", "mhtml", "pdf", "har"].iter().any(|kind| file["kind"] == *kind);
        assert_eq!(header(&headers, "content-disposition").starts_with("attachment"), is_saved, "{file}");
        // Neither another name nor another key is served.
        let (path, _) = url.rsplit_once('/').context("a path")?;
        for other in [format!("{path}/other.html"), url.replacen("/f/", "/f/0", 1), path.to_owned()] {
            assert_eq!(fetch(&app, &other).await?.status(), 404, "{other}");
        }
    }

    let id = grab["id"].as_str().context("id")?;
    let (_, shown) = app.get(&format!("/grabs/{id}"), app.live()).await?;
    assert_eq!(shown["files"], grab["files"]);
    assert_eq!(app.get(&format!("/grabs/{id}"), app.test()).await?.0, 404);
    let agent = Agent::new(&app, app.live(), MODERN);
    let answer = agent.call("get_grab", json!({ "id": id, "include_image": false })).await?;
    assert_eq!(answer.structured()?["files"], grab["files"]);
    assert!(answer.result()?["content"].to_string().contains("page.pdf"));

    let deleted = app.client.delete(format!("{}/grabs/{id}", app.base())).bearer_auth(app.live()).send().await?;
    assert_eq!(deleted.status(), 204);
    for file in files(&grab) {
        assert_eq!(fetch(&app, file["url"].as_str().context("url")?).await?.status(), 404, "{file}");
    }
    let (_, after) = app.get(&format!("/grabs/{id}"), app.live()).await?;
    assert_eq!((&after["files"], &after["image_sha256"]), (&Value::Null, &grab["image_sha256"]));
    let left = stored(&app.data_dir().join("images"))?;
    assert!(left.is_empty(), "{left:?}");
    // The plain grab has no files, and its answer no such member.
    let (plain, _) = app.capture("/tiny", json!({})).await?;
    assert!(plain.get("files").is_none());
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn marks_are_drawn_on_a_copy_of_the_image() -> Result<()> {
    let app = TestApp::start(2, &[]).await?;
    let html = "<body style='margin:0;background:white'><a href='https://example.com/' style='position:absolute;\
        left:40px;top:60px;width:200px;height:50px'></a><button style='position:absolute;left:40px;top:200px'>Go</button>";
    let body = json!({ "html": html, "width": 400, "height": 300, "format": "webp", "also": ["marks"] });
    let request = app.client.post(format!("{}/grabs", app.base())).bearer_auth(app.live());
    let grab: Value = request.json(&body).send().await?.json().await?;
    let kinds: Vec<_> = files(&grab).iter().map(|file| file["kind"].clone()).collect();
    assert_eq!(kinds, ["elements", "marks"], "{grab}");
    let url = files(&grab)[1]["url"].as_str().context("url")?;
    let response = fetch(&app, url).await?;
    assert_eq!(header(response.headers(), "content-type"), "image/png");
    let marked = image::load_from_memory(&response.bytes().await?)?.into_rgb8();
    let plain = fetch(&app, grab["image_url"].as_str().context("image_url")?).await?.bytes().await?;
    let plain = image::load_from_memory(&plain)?.into_rgb8();
    assert_eq!(marked.dimensions(), plain.dimensions());
    // The outline of the link, which is not on the image, and the middle of the link, which is left as it is.
    let (outline, middle) = ((41, 80), (140, 85));
    assert_eq!(plain.get_pixel(outline.0, outline.1).0, [255; 3]);
    assert_eq!(marked.get_pixel(outline.0, outline.1).0, [0xc4, 0x00, 0x62]);
    assert_eq!(marked.get_pixel(middle.0, middle.1).0, [255; 3]);
    assert_eq!(credits(&app).await?, json!(1));
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn placeholders_have_small_files_of_each_kind() -> Result<()> {
    let app = TestApp::start_without_browser(1, &[]).await?;
    let request = app.client.post(format!("{}/grabs", app.base())).bearer_auth(app.test());
    let kinds = [&KINDS[..], &["elements", "accessibility", "marks"]].concat();
    let grab: Value =
        request.json(&json!({ "url": "https://example.com/", "also": kinds })).send().await?.json().await?;
    assert_eq!(files(&grab).len(), kinds.len(), "{grab}");
    for file in files(&grab) {
        let url = file["url"].as_str().context("url")?;
        assert!(url.starts_with("/f/"), "{url}");
        let content = fetch(&app, url).await?.error_for_status()?.bytes().await?;
        assert_eq!(json!(content.len()), file["bytes"]);
    }
    let id = grab["id"].as_str().context("id")?;
    let deleted = app.client.delete(format!("{}/grabs/{id}", app.base())).bearer_auth(app.test()).send().await?;
    assert_eq!(deleted.status(), 204);
    for file in files(&grab) {
        assert_eq!(fetch(&app, file["url"].as_str().context("url")?).await?.status(), 404);
    }
    assert_eq!(credits(&app).await?, json!(1));
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn file_that_cannot_be_made_fails_the_capture_uncharged() -> Result<()> {
    let app = TestApp::start(1, &[]).await?;
    let body = json!({ "url": app.site.url("/tiny"), "also": ["pdf"], "pdf": { "pages": "99" } });
    let (status, failed) = app.create(body).await?;
    assert_eq!((status, &failed["error"]["code"]), (500, &json!("render_failed")), "{failed}");
    for refused in [
        json!({ "also": ["warc"] }),
        json!({ "also": "pdf" }),
        json!({ "pdf": { "format": "a4" } }),
        json!({ "also": ["html"], "pdf": { "format": "a4" } }),
        json!({ "also": ["pdf"], "pdf": { "format": "a9" } }),
        json!({ "also": ["pdf"], "pdf": { "pages": "3-1" } }),
    ] {
        let mut body = refused.clone();
        body["url"] = json!(app.site.url("/tiny"));
        let (status, answer) = app.create(body).await?;
        assert_eq!((status, &answer["error"]["code"]), (400, &json!("bad_request")), "{refused}: {answer}");
    }
    assert_eq!(credits(&app).await?, json!(1));
    assert!(stored(&app.data_dir().join("images"))?.is_empty());
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_member_of_the_layout_of_a_pdf_is_named() -> Result<()> {
    let app = TestApp::start_without_browser(1, &[]).await?;
    for (pdf, member) in [
        (json!({ "format": "a9" }), "format"),
        (json!({ "landscape": "yes" }), "landscape"),
        (json!({ "margin_mm": 51 }), "margin_mm"),
        (json!({ "pages": "3-1" }), "pages"),
        (json!({ "width_mm": 24, "height_mm": 100 }), "width_mm"),
        (json!({ "width_mm": 100 }), "width_mm"),
        (json!({ "width_mm": 100, "height_mm": 2001 }), "height_mm"),
        (json!({ "height_mm": 100 }), "height_mm"),
        (json!({ "width_mm": 100, "height_mm": 100, "format": "a4" }), "format"),
        (json!({ "margin_top_mm": -1 }), "margin_top_mm"),
        (json!({ "margin_right_mm": 100.1 }), "margin_right_mm"),
        (json!({ "margin_bottom_mm": "wide" }), "margin_bottom_mm"),
        (json!({ "format": "a5", "margin_left_mm": 100, "margin_right_mm": 40 }), "margin_left_mm"),
        (json!({ "scale": 0.05 }), "scale"),
        (json!({ "scale": 2.1 }), "scale"),
        (json!({ "header": "" }), "header"),
        (json!({ "header": "x".repeat(201) }), "header"),
        (json!({ "header": "{total}" }), "header"),
        (json!({ "footer": "a;b" }), "footer"),
        (json!({ "first_page_header": "{total}" }), "first_page_header"),
        (json!({ "footer": "{page}", "margin_bottom_mm": 5 }), "footer"),
        (json!({ "css_page_size": 1 }), "css_page_size"),
        (json!({ "css_page_size": true, "single_page": true }), "css_page_size"),
        (json!({ "tagged": "no" }), "tagged"),
        (json!({ "outline": true, "tagged": false }), "outline"),
    ] {
        let body = json!({ "url": "https://example.com/", "also": ["pdf"], "pdf": pdf });
        let (status, answer) = app.create(body.clone()).await?;
        assert_eq!((status, &answer["error"]["code"]), (400, &json!("bad_request")), "{body}: {answer}");
        let message = answer["error"]["message"].as_str().context("message")?;
        assert!(message.starts_with(&format!("`pdf.{member}` must be ")), "{body}: {message}");
    }
    let unknown = json!({ "url": "https://example.com/", "also": ["pdf"], "pdf": { "colour": "red" } });
    let (status, answer) = app.create(unknown).await?;
    assert_eq!(status, 400, "{answer}");
    assert!(answer.to_string().contains("`pdf` must be an object with optionally `format`"), "{answer}");
    assert_eq!(credits(&app).await?, json!(1));
    app.finish().await
}

/// Fails if a file below the directory contains the document.
fn check_hidden(directory: &Path) -> Result<()> {
    for path in stored(directory)? {
        // Sockets cannot be read, and files may be removed meanwhile.
        let Ok(bytes) = std::fs::read(&path) else { continue };
        let is_hidden = !bytes.windows(HIDDEN.len()).any(|window| window == HIDDEN.as_bytes());
        ensure!(is_hidden, "{} contains the document", path.display());
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn document_of_a_mebibyte_is_captured_and_neither_stored_nor_shown() -> Result<()> {
    let app = TestApp::start(3, &[]).await?;
    let start = format!("<!doctype html><title>Invoice</title><h1>Invoice</h1><!-- {HIDDEN} ");
    let document = |bytes: usize| format!("{start}{}-->", "é".repeat((bytes - start.len() - 3) / 2));
    let document = document(1 << 20);
    ensure!(document.len() > (1 << 20) - 2);
    let (status, grab) = app.create(json!({ "html": document, "also": ["markdown"] })).await?;
    assert_eq!(status, 200, "{grab}");
    assert_eq!(grab["target_url"], "https://html.example/");
    assert_eq!(grab["title"], "Invoice");
    assert!(!grab.to_string().contains(HIDDEN));
    let markdown = fetch(&app, files(&grab)[0]["url"].as_str().context("url")?).await?.text().await?;
    assert_eq!(markdown, "# Invoice\n");
    check_hidden(&app.data_dir())?;
    assert_eq!(credits(&app).await?, json!(2));

    let queued = json!({ "html": document, "base_url": "https://example.com/invoices/1" });
    let request = app.client.post(format!("{}/grabs?async=true", app.base())).bearer_auth(app.live());
    let grab: Value = request.json(&queued).send().await?.json().await?;
    check_hidden(&app.data_dir())?;
    let path = format!("{}/grabs/{}", app.base(), grab["id"].as_str().context("id")?);
    let wait = app.client.get(path).bearer_auth(app.live()).header("prefer", "wait=25");
    let ended: Value = wait.send().await?.json().await?;
    assert_eq!((&ended["status"], &ended["final_url"]), (&json!("done"), &json!("https://example.com/invoices/1")));
    check_hidden(&app.data_dir())?;

    let agent = Agent::new(&app, app.live(), MODERN);
    let answer = agent.call("create_grab", json!({ "html": document, "include_image": false })).await?;
    assert_eq!(answer.structured()?["status"], "done");
    assert_eq!(credits(&app).await?, json!(0));
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn either_a_url_or_a_document_with_a_public_base_url_is_required() -> Result<()> {
    let app = TestApp::start_without_browser(1, &[]).await?;
    for (body, code, field) in [
        (json!({}), "bad_request", "url"),
        (json!({ "html": HIDDEN, "url": "https://example.com/" }), "bad_request", "url"),
        (json!({ "html": 5 }), "bad_request", "html"),
        (json!({ "html": format!("{HIDDEN}{}", "x".repeat(1 << 20)) }), "bad_request", "html"),
        (json!({ "html": HIDDEN, "base_url": "https://localhost/" }), "ssrf_detected", "base_url"),
        (json!({ "html": HIDDEN, "base_url": "http://10.0.0.1/" }), "ssrf_detected", "base_url"),
        (json!({ "html": HIDDEN, "base_url": "file:///etc/passwd" }), "bad_request", "base_url"),
        (json!({ "url": "https://example.com/", "base_url": "https://example.com/" }), "bad_request", "base_url"),
    ] {
        let (status, answer) = app.create(body).await?;
        let text = answer.to_string();
        assert_eq!((status, &answer["error"]["code"]), (400, &json!(code)), "{text}");
        assert!(text.contains(&format!("`{field}` must be")) && !text.contains(HIDDEN), "{text}");
    }
    assert_eq!(credits(&app).await?, json!(1));
    app.finish().await
}
