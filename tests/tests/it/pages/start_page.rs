//! The start page and its trial capture.

use std::time::Duration;

use anyhow::{Context, Result};
use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use grabd_tests::client::client;
use grabd_tests::harness::{ALLOWED, REFUSED, TestApp};
use grabd_tests::pixels;
use image::RgbImage;
use image::imageops::{self, FilterType};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::visitor::{Visitor, start_app};

/// Nothing but the sample of a phone's dark full page.
const PHONE: &str = "page=daylight&device=phone&full_page=true&color_scheme=dark";

#[tokio::test(flavor = "multi_thread")]
async fn trial_capture_is_a_placeholder_and_stores_nothing() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut visitor = Visitor::new(&app);
    let form_token = visitor.get("/").await?.hidden_field("form_token")?;
    let before = app.site.total_hits();
    let url = app.site.url("/tiny");
    let answer = visitor.post("/", &[("form_token", &form_token), ("url", &url)]).await?;
    assert_eq!(answer.status, 200);
    let source = answer.body.split("src=\"data:image/jpeg;base64,").nth(1).context("a picture")?;
    let file = BASE64.decode(source.split('"').next().unwrap_or_default())?;
    assert_eq!(pixels::decode(&file).dimensions(), (1280, 720));
    assert!(answer.header("content-security-policy").contains("img-src 'self' data:;"));
    assert_eq!(app.site.total_hits(), before, "the page was visited");
    let kept = std::fs::read_dir(app.data_dir().join("images/i"))?.count();
    assert_eq!(kept, 0);

    // What is refused for test keys is refused here, beside the field.
    for (url, expected) in [
        ("", "Enter a web address such as example.com."),
        ("http://localhost/", "This URL is not public"),
        ("http://169.254.169.254/latest/", "This URL is not public"),
        ("javascript:alert(1)", "Enter a web address such as example.com."),
        ("https://user:password@example.com/", "without a user name"),
        ("https://blocked.test/", "HTTP 403 (a test)"),
        ("https://exhausted.test/", "no credits left"),
    ] {
        let answer = visitor.post("/", &[("form_token", &form_token), ("url", url)]).await?;
        assert_eq!(answer.status, 422, "{url}");
        assert!(answer.body.contains(expected), "{url}: {}", answer.body);
        assert!(answer.body.contains("id=\"url-error\"") && answer.body.contains("aria-invalid"), "{url}");
        assert!(!answer.header("content-security-policy").contains("data:"), "{url}");
    }
    // Forged forms are refused.
    assert_eq!(Visitor::new(&app).post("/", &[("form_token", &form_token), ("url", &url)]).await?.status, 403);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn sample_pages_are_captured_for_visitors_while_no_customer_needs_the_slot() -> Result<()> {
    let app = TestApp::start(5, &[("browser.slots", "1")]).await?;
    let mut visitor = Visitor::new(&app);
    let image_url = format!("{}/sample.webp?{PHONE}", app.service.public_url());
    // A customer's capture has the only slot.
    let create = app.client.post(format!("{}/grabs?async=true", app.base())).bearer_auth(app.live());
    let grab: Value = create.json(&json!({ "url": app.site.url("/held/tiny") })).send().await?.json().await?;
    app.site.wait_for_hits("/held/tiny", 1).await;
    let busy = visitor.get(&format!("/?{PHONE}")).await?;
    assert!(busy.status == 200 && busy.body.contains("All browsers are busy"), "{}", busy.body);
    assert_eq!(app.client.get(&image_url).send().await?.status(), 503);
    app.client.post(app.site.url("/held/tiny")).send().await?.error_for_status()?;
    let url = format!("{}/grabs/{}", app.base(), grab["id"].as_str().context("an id")?);
    let ended = app.client.get(url).header("prefer", "wait=25").bearer_auth(app.live()).send().await?;
    assert!(ended.text().await?.contains("\"done\""));

    // The slot is free a moment after the capture is done.
    timeout(Duration::from_secs(60), async {
        while app.client.get(&image_url).send().await?.status() == 503 {}
        Ok::<_, reqwest::Error>(())
    })
    .await??;
    let shown = visitor.get(&format!("/?{PHONE}")).await?;
    assert!(shown.body.contains("src=\"/sample.webp?page=daylight"), "{}", shown.body);
    let response = app.client.get(&image_url).send().await?.error_for_status()?;
    assert_eq!(response.headers()["content-type"], "image/webp");
    let file = response.bytes().await?;
    let image = pixels::decode(&file);
    assert!(image.width() < 1280 && image.height() > 2 * image.width(), "{:?}", image.dimensions());
    let [red, green, blue] = image.get_pixel(4, 4).0;
    assert!(red < 60 && green < 60 && blue < 60, "the dark design");
    let again = app.client.get(&image_url).send().await?.bytes().await?;
    assert_eq!(again, file);

    // No grab is made, and nothing is charged.
    let (_, usage) = app.get("/usage", app.live()).await?;
    assert_eq!((&usage["credits"]["total"], &usage["usage"]["grabs_last_30d"]), (&json!(4), &json!(1)), "{usage}");
    let unknown = format!("{}/sample.webp?page=other", app.service.public_url());
    assert_eq!(app.client.get(unknown).send().await?.status(), 404);
    app.finish().await
}

/// The pane of the start page with the image.
fn result_of(body: &str) -> Result<&str> {
    body.split("<div class=\"result\">")
        .nth(1)
        .and_then(|rest| rest.split("<div class=\"code-of-sample\">").next())
        .context("a result")
}

/// The mean difference of two images per channel, in the size of the second one.
fn mean_difference(image: &RgbImage, other: &RgbImage) -> f64 {
    let resized = imageops::resize(image, other.width(), other.height(), FilterType::Triangle);
    let sum: f64 = resized.iter().zip(other.iter()).map(|(one, two)| f64::from(one.abs_diff(*two))).sum();
    sum / f64::from(other.width() * other.height() * 3)
}

#[tokio::test(flavor = "multi_thread")]
async fn pictures_of_the_start_page_are_what_a_capture_gives() -> Result<()> {
    let app = TestApp::start(0, &[("browser.slots", "1")]).await?;
    let start = Visitor::new(&app).get("/").await?;
    let source = |name: &str| {
        let source = start.body.split("src=\"").find(|rest| rest.starts_with(&format!("/assets/{name}.")));
        source.and_then(|rest| rest.split('"').next()).map(str::to_owned).context(name.to_owned())
    };
    let picture = source("picture")?;
    // The same picture on top and in the place of the result.
    assert!(
        result_of(&start.body)?.contains(&format!("src=\"{picture}\" width=\"1280\" height=\"720\"")),
        "{}",
        start.body
    );
    for (shown, query) in
        [(picture, "page=daylight"), (source("phone")?, "page=dashboard&device=phone&color_scheme=dark")]
    {
        let fetch = async |path: String| {
            let url = format!("{}{path}", app.service.public_url());
            let file = app.client.get(url).send().await?.error_for_status()?.bytes().await?;
            Ok::<_, reqwest::Error>(pixels::decode(&file))
        };
        let (shown, captured) = (fetch(shown).await?, fetch(format!("/sample.webp?{query}")).await?);
        let difference = mean_difference(&captured, &shown);
        assert!(difference < 4.0, "{query} differs by {difference} from the picture of the start page");
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn code_of_the_start_page_is_that_of_its_forms() -> Result<()> {
    let app = TestApp::start(0, &[("browser.slots", "1")]).await?;
    let mut visitor = Visitor::new(&app);
    for (query, expected) in [
        ("url=example.org%2Fa", &["https://example.org/a&#34;"][..]),
        ("url=", &["https://example.com/&#34;"]),
        (
            "page=dashboard&device=phone&full_page=true",
            &["https://example.com/", "&#34;device&#34;:&#34;phone&#34;", "full_page"],
        ),
        ("url=ftp%3A%2F%2Fexample.com", &["There is no code for this URL.", "Enter a web address"]),
        // Only the fields of the forms count.
        ("url=example.org&width=1", &["https://example.org/"]),
    ] {
        let part = visitor.get(&format!("/code?{query}")).await?;
        assert_eq!(part.status, 200, "{query}");
        assert!(!part.body.contains("<title>"), "{query}: {}", part.body);
        for text in expected {
            assert!(part.body.contains(text), "{query}: {text} {}", part.body);
        }
    }
    app.finish().await
}

/// The query that captures a page for a visitor.
fn page(url: &str) -> String {
    url::form_urlencoded::Serializer::new(String::new()).append_pair("page", url).finish()
}

#[tokio::test(flavor = "multi_thread")]
async fn visitors_capture_the_live_pages_that_the_operator_allows_and_no_others() -> Result<()> {
    let app = TestApp::start(1, &[("browser.slots", "1")]).await?;
    let (allowed, other) = (app.site.url("/tiny"), app.site.url("/article"));
    let private = allowed.replace(&ALLOWED.to_string(), &REFUSED.to_string());
    let app = app.restart_with(&[("samples.sites", &format!("{allowed},{private}"))]).await?;
    let mut visitor = Visitor::new(&app);
    let start = visitor.get("/").await?;
    // The first live page is selected. What its capture looks like is not known yet, so no other image is in its place.
    assert!(start.body.contains(&format!("<option value=\"{allowed}\" selected>")), "{}", start.body);
    assert!(result_of(&start.body)?.contains("The image appears here."), "{}", start.body);
    assert!(start.body.contains(&format!("\"url\":\"{allowed}\"").replace('"', "&#34;")), "the code has its URL");
    assert_eq!(app.site.total_hits(), 0, "showing the form visits nothing");

    // A page that is not in the list is not visited, whether in the form or as an image. Neither is one beside it.
    for url in [&other, &format!("{allowed}?"), &format!("{allowed}/"), &"https://example.com/".to_owned()] {
        let shown = visitor.get(&format!("/?{}", page(url))).await?;
        assert!(shown.status == 200 && !shown.body.contains("sample.webp"), "{url}: {}", shown.body);
        let image = format!("{}/sample.webp?{}", app.service.public_url(), page(url));
        assert_eq!(app.client.get(image).send().await?.status(), 404, "{url}");
    }
    // A private address is refused by the guard, although the operator listed it.
    let shown = visitor.get(&format!("/?{}", page(&private))).await?;
    assert!(shown.body.contains("could not be captured"), "{}", shown.body);
    assert_eq!(app.site.total_hits(), 0);

    // The image alone captures nothing. After the form it is there, and the page is not visited again.
    let image = format!("{}/sample.webp?{}", app.service.public_url(), page(&allowed));
    assert_eq!(app.client.get(&image).send().await?.status(), 503);
    assert_eq!(app.site.total_hits(), 0);
    for _ in 0..2 {
        let shown = visitor.get(&format!("/?{}", page(&allowed))).await?;
        assert!(shown.body.contains("src=\"/sample.webp?page=http") && shown.body.contains(" px, "), "{}", shown.body);
        assert!(shown.body.contains(&format!("\"url\":\"{allowed}\"").replace('"', "&#34;")), "the code has its URL");
    }
    assert_eq!(app.site.hits("/tiny"), 1);
    // The start page shows what was captured.
    let start = visitor.get("/").await?;
    assert!(result_of(&start.body)?.contains("src=\"/sample.webp?page=http"), "{}", start.body);
    assert_eq!(app.site.hits("/tiny"), 1);
    let response = app.client.get(&image).send().await?.error_for_status()?;
    assert_eq!(response.headers()["content-type"], "image/webp");
    assert_eq!(pixels::decode(&response.bytes().await?).dimensions(), (1280, 720));

    // No grab is made, and nothing is charged.
    let (_, usage) = app.get("/usage", app.live()).await?;
    assert_eq!((&usage["credits"]["total"], &usage["usage"]["grabs_last_30d"]), (&json!(1), &json!(0)), "{usage}");
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn live_pages_wait_for_customers_follow_the_rules_for_domains_and_are_limited_by_address() -> Result<()> {
    let app = TestApp::start(5, &[("browser.slots", "1")]).await?;
    let (allowed, refusing) = (app.site.url("/tiny"), app.site.url("/status/403"));
    let app = app.restart_with(&[("samples.sites", &format!("{allowed},{refusing}"))]).await?;
    let mut visitor = Visitor::new(&app);
    // A customer's capture has the only slot.
    let create = app.client.post(format!("{}/grabs?async=true", app.base())).bearer_auth(app.live());
    let grab: Value = create.json(&json!({ "url": app.site.url("/held/tiny") })).send().await?.json().await?;
    app.site.wait_for_hits("/held/tiny", 1).await;
    let busy = visitor.get(&format!("/?{}", page(&allowed))).await?;
    assert!(busy.status == 200 && busy.body.contains("All browsers are busy"), "{}", busy.body);
    assert_eq!(app.site.hits("/tiny"), 0);
    app.client.post(app.site.url("/held/tiny")).send().await?.error_for_status()?;
    let url = format!("{}/grabs/{}", app.base(), grab["id"].as_str().context("an id")?);
    let ended = app.client.get(url).header("prefer", "wait=25").bearer_auth(app.live()).send().await?;
    assert!(ended.text().await?.contains("\"done\""));

    // The slot is free a moment after the capture is done.
    let bundled = format!("{}/sample.webp?{PHONE}", app.service.public_url());
    timeout(Duration::from_secs(60), async {
        while app.client.get(&bundled).send().await?.status() == 503 {}
        Ok::<_, reqwest::Error>(())
    })
    .await??;

    // A page that refuses is visited once, however often visitors ask.
    for _ in 0..3 {
        let refused = visitor.get(&format!("/?{}", page(&refusing))).await?;
        assert!(refused.body.contains("could not be captured"), "{}", refused.body);
    }
    assert_eq!(app.site.hits("/status/403"), 1);

    // A denied domain is not captured.
    let before = app.site.hits("/tiny");
    let denied = app.restart_with(&[("abuse.allow_domains", "example.com")]).await?;
    let mut visitor = Visitor::new(&denied);
    let shown = visitor.get(&format!("/?{}", page(&allowed))).await?;
    assert!(shown.body.contains("could not be captured"), "{}", shown.body);
    assert_eq!(denied.site.hits("/tiny"), before);

    // The limit counts samples alone, however many pages the address may see.
    let mut statuses = Vec::new();
    for _ in 0..40 {
        statuses.push(visitor.get(&format!("/?{}", page(&allowed))).await?.status);
    }
    assert!(statuses.contains(&429), "{statuses:?}");
    assert_eq!(visitor.get("/").await?.status, 200);
    denied.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn prices_match_the_pricing_packet() -> Result<()> {
    let app = start_app(&[]).await?;
    let (_, packet) = app.get("/pricing", app.test()).await?;
    let body = Visitor::new(&app).get("/").await?.body;
    for words in ["$0.002", "25,000 credits", "50,000 credits", "125,000 credits", "$50", "$100", "$250"] {
        assert!(body.contains(words), "{words}");
    }
    for words in ["billing_model", "test_mode"] {
        assert!(body.contains(packet["pricing"][words].as_str().context("words")?), "{words}");
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_path_returns_a_page_to_browsers_and_json_to_programs() -> Result<()> {
    let app = start_app(&[]).await?;
    let client = client().build()?;
    for (path, accept, kind) in [
        ("/nothing", "text/html,application/xhtml+xml,*/*;q=0.8", "text/html; charset=utf-8"),
        ("/sign-in/nothing", "text/html", "text/html; charset=utf-8"),
        ("/nothing", "*/*", "application/json"),
        ("/v1/nothing", "text/html", "application/json"),
    ] {
        let url = format!("http://{}{path}", app.service.http());
        let response = client.get(url).header("accept", accept).send().await?;
        assert_eq!((response.status().as_u16(), response.headers()["content-type"].to_str()?), (404, kind), "{path}");
    }
    app.finish().await
}
