//! Texts and images of files in results, and files as resources.

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use grabd_engine::accounts;
use grabd_engine::clock::Clock;
use grabd_tests::agent::{Agent, LEGACY, MODERN, McpResponse};
use grabd_tests::harness::TestApp;
use serde_json::{Value, json};

/// A page with a button that says this, and an article of many paragraphs with characters of several bytes.
fn page(button: &str, price: u32) -> String {
    let price = format!("<p>The price of the tour is {price} euros for each visitor.</p>");
    // Repeated paragraphs would be left out.
    let paragraphs: String = (1..=60)
        .map(|day| {
            format!(
                "<p>Tag {day}: Die Größe der Brücke überrascht, sie trägt viele, und jeder Schritt zählt. 日本語。</p>"
            )
        })
        .collect();
    let article = format!("<article><h1>The bridge</h1>{price}{paragraphs}</article>");
    format!("<!DOCTYPE html><meta charset=utf-8><button id=buy>{button}</button>{article}")
}

/// The texts of a result, without the last one, which is the structured content.
fn texts(answer: &McpResponse) -> Result<Vec<String>> {
    let content = answer.result()?["content"].as_array().context("content")?;
    let texts = content.iter().filter_map(|block| block["text"].as_str().map(str::to_owned));
    let mut texts: Vec<String> = texts.collect();
    texts.pop();
    Ok(texts)
}

/// The text after the line that begins with a name.
fn text_of(answer: &McpResponse, name: &str) -> Result<String> {
    let texts = texts(answer)?;
    let at = texts.iter().position(|text| text.starts_with(&format!("{name} of grab ")));
    let at = at.with_context(|| format!("no {name} in {texts:?}"))?;
    texts.get(at + 1).cloned().context("a text")
}

fn id(grab: &Value) -> Result<&str> {
    grab["id"].as_str().context("an id")
}

/// The content of the file of a kind.
async fn file(app: &TestApp, grab: &Value, kind: &str) -> Result<String> {
    let files = grab["files"].as_array().context("files")?;
    let file = files.iter().find(|file| file["kind"] == kind).with_context(|| format!("no {kind} in {files:?}"))?;
    Ok(app.client.get(file["url"].as_str().context("url")?).send().await?.text().await?)
}

#[tokio::test(flavor = "multi_thread")]
async fn text_is_read_from_the_capture_to_its_end_without_loss() -> Result<()> {
    let app = TestApp::start(1, &[]).await?;
    for version in [MODERN, LEGACY[0]] {
        let agent = Agent::new(&app, if version == MODERN { app.live() } else { app.test() }, version);
        let arguments =
            json!({ "html": page("Buy", 1), "read": ["markdown"], "max_tokens": 300, "include_image": false });
        let made = agent.call("create_grab", arguments).await?;
        let grab = made.structured()?.clone();
        let whole = file(&app, &grab, "markdown").await?;
        let mut read = text_of(&made, "markdown")?;
        let mut parts = 1;
        let mut last = texts(&made)?.pop().context("a text")?;
        while let Some((_, from)) = last.rsplit_once("and from ") {
            ensure!(last.starts_with("For the rest, call get_grab with id "), "{last}");
            let from: u64 = from.trim_end_matches('.').parse()?;
            ensure!(usize::try_from(from)? == read.len(), "{from} after {} bytes", read.len());
            let arguments = json!({ "id": id(&grab)?, "read": ["markdown"], "max_tokens": 300, "from": from });
            let next = agent.call("get_grab", arguments).await?;
            read.push_str(&text_of(&next, "markdown")?);
            parts += 1;
            last = texts(&next)?.pop().context("a text")?;
        }
        assert_eq!(read, whole);
        // The placeholder of a test key says one line.
        assert_eq!(parts > 5, version == MODERN, "{parts} parts");
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_since_an_earlier_capture_are_told_and_shown() -> Result<()> {
    let app = TestApp::start(3, &[]).await?;
    let agent = Agent::new(&app, app.live(), MODERN);
    let read = json!(["elements", "difference", "marks"]);
    let before = json!({ "html": page("Buy now", 7), "also": ["elements", "text"], "include_image": false });
    let before = agent.call("create_grab", before).await?.structured()?.clone();
    let after =
        json!({ "html": page("Sold out", 8), "compare_to": id(&before)?, "read": read, "include_image": false });
    let made = agent.call("create_grab", after).await?;
    let content = made.result()?["content"].as_array().context("content")?;
    let images: Vec<_> = content.iter().filter(|block| block["type"] == "image").collect();
    assert_eq!(images.len(), 2, "the marked image and that of the difference");
    assert!(made.body["result"].to_string().len() < 900_000);
    let elements = text_of(&made, "elements")?;
    assert!(elements.contains("button \"Sold out\" "), "{elements}");
    let changes = text_of(&made, "difference")?;
    for part in [
        "~ was \"Buy now\", now button \"Sold out\" ",
        "+ The price of the tour is 8 ",
        "- The price of the tour is 7 ",
        " % of the image changed.",
    ] {
        assert!(changes.contains(part), "{part:?} in {changes}");
    }

    // Of two captures that were not compared when they were made.
    let other = json!({ "html": page("Buy now", 9), "also": ["elements", "text"], "include_image": false });
    let other = agent.call("create_grab", other).await?.structured()?.clone();
    let arguments = json!({ "id": id(&other)?, "read": ["difference", "report"], "compare_to": id(&before)? });
    let read = agent.call("get_grab", arguments).await?;
    let changes = text_of(&read, "difference")?;
    assert!(changes.contains("No element changed.") && changes.contains("+ The price of the tour is 9 "), "{changes}");
    let missing = "There is no report. The grab has no file `report`";
    assert!(texts(&read)?.iter().any(|text| text.starts_with(missing)), "{:?}", texts(&read)?);

    // Without an earlier capture nothing is captured, and nothing charged.
    let refused = agent.call("create_grab", json!({ "html": "<p>x", "read": ["difference"] })).await?.failure()?;
    assert_eq!(refused["error"]["code"], "bad_request");
    assert!(refused["error"]["message"].as_str().is_some_and(|message| message.contains("`compare_to`")), "{refused}");
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_another_team_is_read() -> Result<()> {
    let app = TestApp::start_without_browser(1, &[]).await?;
    let other = accounts::create_team(app.service.store(), "another", 1, Clock::system().now()).await?;
    let create = json!({ "url": "https://example.com/", "also": ["markdown", "elements", "text"] });
    let theirs = Agent::new(&app, other.test.expose(), MODERN).call("create_grab", create.clone()).await?;
    let theirs = id(theirs.structured()?)?.to_owned();
    let agent = Agent::new(&app, app.test(), MODERN);
    let own = agent.call("create_grab", create).await?;
    let own = id(own.structured()?)?.to_owned();
    for arguments in [
        json!({ "id": theirs, "read": ["markdown"] }),
        json!({ "id": own, "read": ["difference"], "compare_to": theirs }),
    ] {
        let failure = agent.call("get_grab", arguments.clone()).await?.failure()?;
        assert_eq!(failure["error"]["code"], "not_found", "{arguments}");
    }
    let resource = agent.ask("resources/read", json!({ "uri": format!("grab://{theirs}/markdown") })).await?;
    assert_eq!((resource.status, resource.code()), (400, -32602), "{}", resource.body);
    for path in [format!("{theirs}/read"), format!("{own}/read?format=difference&compare_to={theirs}")] {
        let (status, answer) = app.get(&format!("/grabs/{path}"), app.test()).await?;
        assert_eq!((status, &answer["error"]["code"]), (404, &json!("not_found")), "{path}: {answer}");
    }
    let (status, answer) = app.get(&format!("/grabs/{own}/read"), app.test()).await?;
    assert_eq!((status, &answer["format"], &answer["next"]), (200, &json!("markdown"), &Value::Null), "{answer}");
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_file_of_a_capture_is_a_resource() -> Result<()> {
    let app = TestApp::start_without_browser(1, &[]).await?;
    for version in [MODERN, LEGACY[0]] {
        let agent = Agent::new(&app, app.test(), version);
        let listed = agent.ask("resources/templates/list", json!({})).await?;
        assert_eq!(listed.body["result"]["resourceTemplates"][0]["uriTemplate"], "grab://{id}/{file}");
        assert_eq!(agent.ask("resources/list", json!({})).await?.body["result"]["resources"], json!([]));
        let create = json!({ "url": "https://example.com/", "also": ["markdown", "pdf", "report"] });
        let made = agent.call("create_grab", create).await?;
        let grab = made.structured()?;
        let read =
            async |uri: &str| Ok::<_, anyhow::Error>(agent.ask("resources/read", json!({ "uri": uri })).await?.body);

        let uri = format!("grab://{}/markdown", id(grab)?);
        let body = read(&uri).await?;
        let contents = &body["result"]["contents"][0];
        assert_eq!(
            (&contents["uri"], contents["text"].as_str()),
            (&json!(uri), Some(&*file(&app, grab, "markdown").await?))
        );
        assert!(contents["mimeType"].as_str().is_some_and(|kind| kind.starts_with("text/")), "{contents}");
        for (uri, first) in [
            (format!("grab://{}/image", id(grab)?), &b"\x89PNG"[..]),
            (grab["image_url"].as_str().context("image_url")?.to_owned(), b"\x89PNG"),
            (format!("grab://{}/pdf", id(grab)?), b"%PDF"),
        ] {
            let body = read(&uri).await?;
            let blob = body["result"]["contents"][0]["blob"].as_str().with_context(|| format!("{uri}: {body}"))?;
            assert!(BASE64_STANDARD.decode(blob)?.starts_with(first), "{uri}");
        }
        let not_found = if version == MODERN { -32602 } else { -32002 };
        for uri in [
            format!("grab://{}/html", id(grab)?),
            "grab://no-id/image".to_owned(),
            format!("{}/f/no-key/page.md", app.service.public_url()),
            format!("{}/v1/usage", app.service.public_url()),
            "file:///etc/passwd".to_owned(),
        ] {
            assert_eq!(read(&uri).await?["error"]["code"], not_found, "{uri}");
        }
        assert_eq!(agent.ask("resources/read", json!({})).await?.code(), -32602);
    }
    // Without a valid credential, nothing is read.
    let stranger = Agent::new(&app, "sk_test_unknown", MODERN);
    assert_eq!(stranger.ask("resources/read", json!({ "uri": "grab://x/image" })).await?.status, 401);
    app.finish().await
}
