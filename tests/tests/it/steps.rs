//! Steps on the loaded page, through the whole service.

use anyhow::{Context, Result};
use grabd_tests::harness::TestApp;
use image::GenericImageView as _;
use serde_json::{Value, json};

use super::files::{credits, fetch, files, stored};
use super::secrets::check_files;

/// Typed in these tests, and nowhere else.
const HIDDEN: &str = "hidden-value";

const LOGIN: &str =
    "<!doctype html><form><input id=user><input id=password type=password><button>Log in</button></form>
    <script>document.forms[0].onsubmit = (event) => {
        event.preventDefault();
        document.title = `${user.value}, ${password.value.length} characters`;
    }</script>";

fn login(last: &Value) -> Value {
    json!({ "html": LOGIN, "steps": [
        { "type": { "into": "#user", "text": "guest" } },
        { "type": { "into": "#password", "text": HIDDEN, "secret": true } },
        last,
    ] })
}

#[tokio::test(flavor = "multi_thread")]
async fn steps_act_on_the_page_and_are_neither_stored_nor_shown() -> Result<()> {
    let app = TestApp::start(2, &[]).await?;
    let (status, grab) = app.create(login(&json!({ "press": "Enter" }))).await?;
    assert_eq!((status, &grab["title"]), (200, &json!("guest, 12 characters")), "{grab}");
    assert_eq!(credits(&app).await?, json!(1));
    assert!(!grab.to_string().contains(HIDDEN), "{grab}");
    let path = format!("/grabs/{}", grab["id"].as_str().context("an id")?);
    assert!(!app.get(&path, app.live()).await?.1.to_string().contains(HIDDEN));
    check_files(&app.data_dir(), HIDDEN)?;
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_step_is_named_and_not_charged() -> Result<()> {
    let app = TestApp::start(2, &[]).await?;
    let (status, error) = app.create(login(&json!({ "click": "#buy" }))).await?;
    assert_eq!((status, &error["error"]["code"]), (500, &json!("render_failed")), "{error}");
    let message = error["error"]["message"].as_str().context("a message")?;
    let expected = "Step 3 (click): nothing matches \"#buy\" within 5 s. The page has 1 button or link: \"Log in\".";
    assert!(message.contains(expected), "{message}");
    assert_eq!(credits(&app).await?, json!(2));
    check_files(&app.data_dir(), HIDDEN)?;
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_steps_are_refused_by_their_place_and_placeholders_ignore_steps() -> Result<()> {
    let app = TestApp::start_without_browser(1, &[]).await?;
    for (steps, part) in [
        (
            json!([{ "click": "a" }, { "tap": HIDDEN }]),
            "an array whose `steps[1]` is an object with exactly one of `click`,",
        ),
        (
            json!([{ "press": "Tab" }, { "press": HIDDEN }]),
            "an array whose `steps[1].press` is a letter, a digit or one of",
        ),
        (
            json!([{ "press": "Tab" }, { "press": "Tab" }, { "type": { "into": 5, "text": HIDDEN } }]),
            "an array whose `steps[2].type.into` is a string of 1 to 1024 characters without control characters;",
        ),
        (
            json!([{ "type": { "into": "a" } }]),
            "an array whose `steps[0].type.text` is a string of 1 to 4096 characters;",
        ),
        (
            json!([{ "capture": "a" }, { "capture": HIDDEN.to_owned() + "/" }]),
            "an array whose `steps[1].capture` is a letter, followed by",
        ),
        (json!(HIDDEN), "an array of at most 20 objects, each with exactly one of `click` ("),
        (Value::Array(vec![json!({ "press": "Tab" }); 21]), "an array of at most 20 objects"),
    ] {
        let (status, answer) = app.create(json!({ "url": "https://example.com/", "steps": steps })).await?;
        assert_eq!((status, &answer["error"]["code"]), (400, &json!("bad_request")), "{answer}");
        let message = answer["error"]["message"].as_str().context("a message")?;
        assert!(message.starts_with(&format!("`steps` must be {part}")) && !message.contains(HIDDEN), "{message}");
    }
    let body = json!({ "url": "https://example.com/", "steps": [{ "click": "a" }, { "capture": "menu" }] });
    let request = app.client.post(format!("{}/grabs", app.base())).bearer_auth(app.test()).json(&body);
    let response = request.send().await?;
    assert_eq!(response.status(), 200);
    check_images(&app, &response.json().await?, &[("menu", (1280, 720))]).await?;
    app.finish().await
}

/// Fetches the images of steps and checks that they are as the grab says. Returns their bytes.
async fn check_images(app: &TestApp, grab: &Value, expected: &[(&str, (u32, u32))]) -> Result<u64> {
    let mut bytes = 0;
    assert_eq!(files(grab).len(), expected.len(), "{grab}");
    for (number, (file, (name, (width, height)))) in files(grab).into_iter().zip(expected).enumerate() {
        assert_eq!((&file["kind"], &file["name"]), (&json!("capture"), &json!(name)), "{file}");
        assert_eq!((&file["width"], &file["height"]), (&json!(width), &json!(height)), "{file}");
        let url = file["url"].as_str().context("url")?;
        assert!(url.ends_with(&format!("/capture-{}.png", number + 1)), "{file}");
        let response = fetch(app, url).await?.error_for_status()?;
        assert_eq!(response.headers()["content-type"], "image/png");
        let content = response.bytes().await?;
        assert_eq!(image::load_from_memory(&content)?.dimensions(), (*width, *height));
        assert_eq!(file["bytes"], json!(content.len()));
        bytes += u64::try_from(content.len())?;
    }
    Ok(bytes)
}

#[tokio::test(flavor = "multi_thread")]
async fn images_of_steps_cost_one_credit_together_and_are_deleted_with_the_image() -> Result<()> {
    let app = TestApp::start(2, &[]).await?;
    let steps =
        json!([{ "capture": "first" }, { "type": { "into": "#user", "text": "guest" } }, { "capture": "typed" }]);
    let (status, grab) = app.create(json!({ "html": LOGIN, "width": 800, "steps": steps })).await?;
    assert_eq!(status, 200, "{grab}");
    assert_eq!(credits(&app).await?, json!(1));
    let beside = check_images(&app, &grab, &[("first", (800, 720)), ("typed", (800, 720))]).await?;
    let bytes = grab["bytes"].as_u64().context("bytes")? + beside;
    assert_eq!(app.service.store().grabs().stored_bytes(app.team.team).await?, bytes);
    let path = format!("/grabs/{}", grab["id"].as_str().context("id")?);
    assert_eq!(app.get(&path, app.live()).await?.1["files"], grab["files"]);
    assert_eq!(stored(&app.data_dir().join("images"))?.len(), 3);
    let deleted = app.client.delete(format!("{}{path}", app.base())).bearer_auth(app.live()).send().await?;
    assert_eq!(deleted.status(), 204);
    assert_eq!(stored(&app.data_dir().join("images"))?, Vec::<std::path::PathBuf>::new());
    assert_eq!(app.service.store().grabs().stored_bytes(app.team.team).await?, 0);

    // What a failed capture had taken is not kept.
    let failing = json!([{ "capture": "first" }, { "click": "#none" }]);
    let (status, error) = app.create(json!({ "html": LOGIN, "steps": failing })).await?;
    assert_eq!((status, &error["error"]["code"]), (500, &json!("render_failed")), "{error}");
    assert_eq!(credits(&app).await?, json!(1));
    assert_eq!(stored(&app.data_dir().join("images"))?, Vec::<std::path::PathBuf>::new());
    app.finish().await
}
