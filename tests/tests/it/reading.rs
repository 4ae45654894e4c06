//! `content`: the text and the Markdown of a capture are the main content of the page.

use anyhow::{Context, Result};
use grabd_tests::harness::TestApp;
use serde_json::{Value, json};

use crate::files::{fetch, files};

const SUMMARY: &str =
    "After two years of repairs, the old bridge over the river is open for cyclists and pedestrians again.";

/// The text and the Markdown of a capture, and its warnings.
async fn read(app: &TestApp, body: Value) -> Result<(String, String, Value)> {
    let mut request = body;
    request["also"] = json!(["text", "markdown"]);
    let (status, grab) = app.create(request).await?;
    anyhow::ensure!(status == 200, "{grab}");
    let mut contents = Vec::new();
    for file in files(&grab) {
        contents.push(fetch(app, file["url"].as_str().context("url")?).await?.text().await?);
    }
    let [text, markdown] = <[String; 2]>::try_from(contents).map_err(|_| anyhow::anyhow!("two files"))?;
    Ok((text, markdown, grab["warnings"].clone()))
}

#[tokio::test(flavor = "multi_thread")]
async fn article_is_read_without_what_is_around_it() -> Result<()> {
    let app = TestApp::start(2, &[]).await?;
    let url = app.site.url("/news");
    let (text, markdown, warnings) = read(&app, json!({ "url": url })).await?;
    assert_eq!(warnings, json!([]));
    for content in [&text, &markdown] {
        for part in [SUMMARY, "The mayor cut a ribbon", "New lamps along the railing", "What comes next", "in autumn"] {
            assert!(content.contains(part), "{part:?} in {content}");
        }
        for part in
            ["Sports", "cookies", "Share by", "Related", "Council argues", "wonderful", "swimming", "free to use"]
        {
            assert!(!content.contains(part), "{part:?} in {content}");
        }
    }
    assert!(!text.contains("Photo"), "{text}");
    assert!(markdown.contains(&format!("[four million]({})", app.site.url("/budget"))), "{markdown}");
    assert!(markdown.contains("## What comes next\n\n- New lamps along the railing\n- A ramp"), "{markdown}");
    assert!(markdown.contains("![The bridge in the rain]("), "{markdown}");

    let (text, markdown, warnings) = read(&app, json!({ "url": url, "content": "page" })).await?;
    assert_eq!(warnings, json!([]));
    for content in [&text, &markdown] {
        for part in ["Sports", "cookies", SUMMARY, "in autumn", "wonderful", "swimming", "free to use"] {
            assert!(content.contains(part), "{part:?} in {content}");
        }
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn page_without_an_article_is_read_as_a_whole_with_a_warning() -> Result<()> {
    let app = TestApp::start(2, &[]).await?;
    let html = "<h1>Shop</h1><ul><li><a href='/1'>Lamp</a> 20 €<li><a href='/2'>Table</a> 90 €</ul>";
    let (text, markdown, warnings) = read(&app, json!({ "html": html })).await?;
    assert_eq!(warnings, json!(["no_main_content"]));
    assert!(text.contains("Lamp 20 €") && markdown.starts_with("# Shop\n\n- [Lamp]"), "{text} {markdown}");
    let (whole, _, warnings) = read(&app, json!({ "html": html, "content": "page" })).await?;
    assert_eq!((whole, warnings), (text, json!([])));
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn content_is_refused_without_files_and_with_other_words() -> Result<()> {
    let app = TestApp::start(1, &[]).await?;
    for refused in [json!({ "content": "page" }), json!({ "content": "article", "also": ["text"] })] {
        let mut body = refused.clone();
        body["url"] = json!(app.site.url("/tiny"));
        let (status, answer) = app.create(body).await?;
        assert_eq!((status, &answer["error"]["code"]), (400, &json!("bad_request")), "{refused}: {answer}");
    }
    app.finish().await
}
