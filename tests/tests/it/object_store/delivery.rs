//! Images are delivered from a bucket as they are from a directory.

use anyhow::{Context, Result};
use bytes::Bytes;
use grabd_domain::capture::FileKind;
use grabd_tests::harness::TestApp;
use grabd_tests::scripted_renderer::ScriptedRenderer;
use reqwest::{Method, Response};
use serde_json::{Value, json};

use super::{capture, image_url, object_name, png, start};

fn header<'a>(response: &'a Response, name: &str) -> &'a str {
    response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

async fn assert_delivered(app: &TestApp) -> Result<()> {
    let mut renderer = ScriptedRenderer::attach(app.service.core()).await?;
    let (image, text) = (png([200, 0, 0]), Bytes::from_static(b"The text of the page."));
    let files = [(FileKind::Text, text.clone()), (FileKind::Html, Bytes::from_static(b"<p>The page</p>"))];
    let grab = capture(app, &mut renderer, json!({ "also": ["text", "html"] }), &image, &files).await?;
    let url = image_url(&grab)?;
    let send = |method: Method, url: &str| app.client.request(method, url.to_owned());
    let whole = send(Method::GET, url).send().await?;
    let fixed = [
        ("content-type", "image/png"),
        ("cache-control", "public, max-age=86400, s-maxage=31536000, immutable"),
        ("content-security-policy", "sandbox; default-src 'none'"),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("accept-ranges", "bytes"),
        ("cross-origin-resource-policy", "cross-origin"),
        ("access-control-allow-origin", "*"),
        ("x-robots-tag", "noindex"),
    ];
    let tag = header(&whole, "etag").to_owned();
    assert_eq!(tag, format!("\"{}\"", url.rsplit_once('/').context("a path")?.1));
    for (name, value) in fixed {
        assert_eq!(header(&whole, name), value, "{name}");
    }
    assert_eq!(header(&whole, "content-length"), image.len().to_string());
    assert_eq!((whole.status().as_u16(), whole.bytes().await?), (200, image.clone()));

    let head = send(Method::HEAD, url).send().await?;
    assert_eq!((head.status().as_u16(), header(&head, "content-length")), (200, &*image.len().to_string()));
    for (name, value) in fixed {
        assert_eq!(header(&head, name), value, "{name}");
    }
    let last = image.len() - 1;
    for (range, first, end) in [("bytes=2-5", 2, 6), ("bytes=10-", 10, image.len()), ("bytes=-3", last - 2, last + 1)] {
        for method in [Method::GET, Method::HEAD] {
            let part = send(method.clone(), url).header("range", range).header("if-range", &tag).send().await?;
            assert_eq!(header(&part, "content-range"), format!("bytes {first}-{}/{}", end - 1, image.len()));
            assert_eq!(header(&part, "content-length"), (end - first).to_string());
            let expected = if method == Method::GET { image.slice(first..end) } else { Bytes::new() };
            assert_eq!((part.status().as_u16(), part.bytes().await?), (206, expected), "{range}");
        }
    }
    let changed = send(Method::GET, url).header("range", "bytes=2-5").header("if-range", "\"x\"").send().await?;
    assert_eq!((changed.status().as_u16(), changed.bytes().await?), (200, image.clone()));
    let several = send(Method::GET, url).header("range", "bytes=0-1,4-5").send().await?;
    assert_eq!((several.status().as_u16(), several.bytes().await?), (200, image.clone()));
    let beyond = send(Method::GET, url).header("range", "bytes=9999999-").send().await?;
    assert_eq!((beyond.status().as_u16(), header(&beyond, "cache-control")), (416, "no-store"));
    assert_eq!(header(&beyond, "content-range"), format!("bytes */{}", image.len()));
    let known = send(Method::GET, url).header("if-none-match", &tag).send().await?;
    assert_eq!((known.status().as_u16(), header(&known, "etag"), header(&known, "content-type")), (304, &*tag, ""));
    let saved = send(Method::GET, &format!("{url}?download=my+page")).send().await?;
    assert_eq!(header(&saved, "content-disposition"), "attachment; filename=\"my page.png\"");

    let beside: Vec<&Value> = grab["files"].as_array().into_iter().flatten().collect();
    let of = |kind: &str| beside.iter().find(|file| file["kind"] == kind).and_then(|file| file["url"].as_str());
    let read = send(Method::GET, of("text").context("the text")?).send().await?;
    assert_eq!(header(&read, "content-type"), "text/plain; charset=utf-8");
    assert_eq!(read.bytes().await?, text);
    let html = send(Method::GET, of("html").context("the HTML")?).send().await?;
    assert_eq!(header(&html, "content-disposition"), "attachment; filename=\"page.html\"");
    assert_eq!(header(&html, "content-security-policy"), "sandbox; default-src 'none'");

    let (path, name) = url.rsplit_once('/').context("a path")?;
    let (random, other) = (&name[..21], if name.as_bytes()[21] == b'0' { '1' } else { '0' });
    for missing in [format!("{path}/{random}{other}.png"), url.replace(".png", ".webp"), format!("{path}/x")] {
        let response = send(Method::GET, &missing).send().await?;
        assert_eq!((response.status().as_u16(), header(&response, "cache-control")), (404, "no-store"), "{missing}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn directory_delivers_images_with_ranges_and_validators() -> Result<()> {
    let app = TestApp::start_without_browser(2, &[]).await?;
    assert_delivered(&app).await?;
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn bucket_delivers_images_with_ranges_and_validators() -> Result<()> {
    let (_server, app) = start(2, &[]).await?;
    assert_delivered(&app).await?;
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn redirect_leads_to_the_object_for_five_minutes() -> Result<()> {
    let (server, app) = start(2, &[("images.delivery", "redirect")]).await?;
    let mut renderer = ScriptedRenderer::attach(app.service.core()).await?;
    let image = png([0, 0, 200]);
    let grab = capture(&app, &mut renderer, json!({}), &image, &[]).await?;
    let url = image_url(&grab)?;
    let redirect = app.client.get(format!("{url}?download=page")).send().await?;
    assert_eq!((redirect.status().as_u16(), header(&redirect, "cache-control")), (302, "no-store"));
    let signed = header(&redirect, "location");
    let parsed = url::Url::parse(signed)?;
    let query = |name: &str| parsed.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned());
    assert!(signed.starts_with(&server.endpoint()) && !signed.contains("the-secret-key"), "{signed}");
    assert_eq!(query("X-Amz-Expires").as_deref(), Some("300"));
    assert_eq!(query("response-content-type").as_deref(), Some("image/png"));
    assert_eq!(query("response-content-disposition").as_deref(), Some("attachment; filename=\"page.png\""));
    // The server checks the signature of the URL. Without it, nobody can read the object.
    assert_eq!(app.client.get(signed).send().await?.bytes().await?, image);
    let bare = signed.split_once('?').context("a query")?.0;
    assert_eq!(app.client.get(bare).send().await?.status(), 403);

    // The signature is for GET only, so HEAD is answered here.
    let head = app.client.head(url).send().await?;
    assert_eq!((head.status().as_u16(), header(&head, "content-length")), (200, &*image.len().to_string()));
    // Placeholders are in no bucket.
    let request = app.client.post(format!("{}/grabs", app.base())).bearer_auth(app.test());
    let test: Value = request.json(&json!({ "url": "https://example.com/" })).send().await?.json().await?;
    let placeholder = format!("{}{}", app.service.public_url(), image_url(&test)?);
    assert_eq!(app.client.get(placeholder).send().await?.status(), 200);
    assert!(server.objects()?.contains(&object_name(url)?));
    app.finish().await
}
