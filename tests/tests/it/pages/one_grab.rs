//! The pages around one image: the response of the API, who made the capture, capturing again, and comparing.

use anyhow::{Context, Result, ensure};
use futures::StreamExt;
use grabd_domain::credentials::Environment;
use grabd_domain::ids::TeamId;
use grabd_tests::harness::TestApp;
use serde_json::{Value, json};

use super::grabs::key_of;
use super::team::{capture, placeholder, team_of};
use super::visitor::{PageResponse, Visitor, start_app, start_capturing_app};

/// The text of the page's element that begins with `start`, without entities.
fn text(page: &str, start: &str, end: &str) -> Result<String> {
    let text = page.split(start).nth(1).and_then(|rest| rest.split(end).next());
    let mut text = text.with_context(|| format!("no {start} in {page}"))?.to_owned();
    for (entity, plain) in [("&#60;", "<"), ("&#62;", ">"), ("&#34;", "\""), ("&#39;", "'"), ("&#38;", "&")] {
        text = text.replace(entity, plain);
    }
    Ok(text)
}

/// The JSON that a page shows as the response of the API.
fn shown_json(page: &str) -> Result<Value> {
    Ok(serde_json::from_str(&text(page, "<pre tabindex=\"0\" id=\"json-text\">", "</pre>")?)?)
}

async fn create(app: &TestApp, key: &str, body: &Value) -> Result<Value> {
    let request = app.client.post(format!("{}/grabs", app.base())).bearer_auth(key).json(body);
    let grab: Value = request.send().await?.json().await?;
    ensure!(grab["status"] == "done", "{grab}");
    Ok(grab)
}

fn id(grab: &Value) -> &str {
    grab["id"].as_str().unwrap_or_default()
}

/// Sends the form that captures again, as it is on the page of a capture.
async fn retake(visitor: &mut Visitor<'_>, page: &str) -> Result<PageResponse> {
    let shown = visitor.get(page).await?;
    let (form_token, once) = (shown.hidden_field("form_token")?, shown.hidden_field("once")?);
    let action = format!("{page}/retake");
    ensure!(shown.body.contains(&format!("action=\"{action}\"")), "{}", shown.body);
    let form = [("form_token", &*form_token), ("once", &*once)];
    let answer = visitor.post(&action, &form).await?;
    if answer.status == 303 {
        // A form that is sent twice makes one capture.
        ensure!(visitor.post(&action, &form).await?.location() == answer.location());
    }
    Ok(answer)
}

/// The page of a capture when it has ended.
async fn ended(visitor: &mut Visitor<'_>, page: &str) -> Result<String> {
    let events = visitor.get(&format!("{page}/events")).await?;
    ensure!(events.body.trim_end().contains("event: end"), "{}", events.body);
    Ok(visitor.get(page).await?.body)
}

/// The outlined regions of a page that compares two captures: left, top, width and height.
fn outlined(page: &str) -> Vec<[i64; 4]> {
    let number = |rect: &str, name: &str| {
        let value = rect.split(&format!("{name}=\"")).nth(1).and_then(|rest| rest.split('"').next());
        value.and_then(|value| value.parse().ok()).unwrap_or(-1)
    };
    let rects = page.split("<rect").skip(1).filter_map(|rest| rest.split("/>").next());
    rects.map(|rect| [" x", " y", " width", " height"].map(|name| number(rect, name))).collect()
}

/// The regions of a difference, as the API returns them.
fn regions(difference: &Value) -> Vec<[i64; 4]> {
    let regions = difference["regions"].as_array().into_iter().flatten();
    regions.map(|of| ["x", "y", "width", "height"].map(|name| of[name].as_i64().unwrap_or(-1))).collect()
}

async fn compared(visitor: &mut Visitor<'_>, team: TeamId, ids: [&str; 2]) -> Result<String> {
    let [one, other] = ids;
    let page = visitor.get(&format!("/teams/{team}/grabs/compare?grab={one}&grab={other}")).await?;
    ensure!(page.status == 200, "{} {}", page.status, page.body);
    Ok(page.body)
}

#[tokio::test(flavor = "multi_thread")]
async fn page_shows_the_response_of_the_api_and_who_made_the_capture() -> Result<()> {
    let app = start_capturing_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = team_of(&app, "ada@example.com", 3).await?;
    let options = json!({ "url": app.site.url("/tall"), "full_page": true, "slice_height": 1000, "phash": true,
                          "also": ["text", "pdf"], "metadata": { "a": "</pre>\"&" } });
    for (environment, cost, alike) in [(Environment::Live, "1 credit", false), (Environment::Test, "free", true)] {
        let key = key_of(&app, "ada@example.com", environment).await?;
        let grab = create(&app, &key, &options).await?;
        let page = ada.get(&format!("/teams/{team}/grabs/{}", id(&grab))).await?.body;
        let (_, returned) = app.get(&format!("/grabs/{}", id(&grab)), &key).await?;
        assert_eq!(shown_json(&page)?, returned, "{environment:?}");
        assert_eq!(returned["image_url"].as_str().is_some_and(|url| url.starts_with("/i/")), alike);
        for expected in [
            "By key <bdi>x</bdi>",
            &*format!("<span id=\"cost\" data-part>{cost}</span>"),
            "<dt>Full page</dt><dd>Yes</dd>",
            "<dt>Perceptual hash</dt>",
        ] {
            assert!(page.contains(expected), "{expected}: {page}");
        }
        // Each file is listed once, and slices as images.
        let files = returned["files"].as_array().context("files")?;
        let list = text(&page, "<ul class=\"file-list\">", "</ul>")?;
        assert_eq!(list.matches("<li>").count(), files.len(), "{list}");
        let slices = files.iter().filter(|file| file["kind"] == "slice").count();
        assert_eq!((list.matches("<img ").count(), slices > 1), (slices, true), "{list}");
    }
    let made_here = placeholder(&mut ada, team, "https://example.com/").await?;
    let page = ada.get(&made_here).await?.body;
    assert!(page.contains("By <bdi>ada@example.com</bdi> (web app)") && !page.contains("<bdi>x</bdi>"), "{page}");
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn one_click_captures_again_and_lands_on_the_difference() -> Result<()> {
    let app = start_capturing_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = team_of(&app, "ada@example.com", 2).await?;
    let key = key_of(&app, "ada@example.com", Environment::Live).await?;
    // A green page, but for the first visit.
    let url = app.site.url("/refuses-once/retake");
    let first = create(&app, &key, &json!({ "url": url, "allow_blocked": true, "width": 640 })).await?;
    let page = format!("/teams/{team}/grabs/{}", id(&first));
    let answer = retake(&mut ada, &page).await?;
    assert_eq!(answer.status, 303, "{}", answer.body);
    let again = answer.location().to_owned();
    let shown = ended(&mut ada, &again).await?;
    let (_, grab) = app.get(&format!("/grabs/{}", again.rsplit('/').next().unwrap_or_default()), &key).await?;
    assert_eq!((&grab["width"], &grab["difference"]["compared_to"]), (&json!(640), &first["id"]), "{grab}");
    let summary = text(&shown, "<p class=\"changed\"><strong>", "</strong>")?;
    assert!(summary.contains(" % changed in "), "{summary}");
    assert!(shown.contains(&format!("<a href=\"{page}\">the earlier capture</a>")), "{shown}");
    // The image of the difference is shown, and the image itself once.
    let image = grab["difference"]["image_url"].as_str().and_then(|url| url.split("/f/").nth(1)).context("an image")?;
    assert_eq!(shown.matches(&format!("<img src=\"/f/{image}\"")).count(), 1, "{shown}");
    assert_eq!(shown.matches("<img src=\"/i/").count(), 1, "{shown}");
    let part = ada.get(&format!("{again}/events?part=result")).await?.body;
    assert!(part.contains(&summary) && part.contains(&format!("/f/{image}")), "{part}");
    assert!(part.contains("Response (JSON)"), "{part}");

    // Both credits are spent.
    assert_eq!(app.get("/usage", &key).await?.1["credits"]["total"], json!(0));
    let refused = retake(&mut ada, &page).await?;
    assert_eq!(refused.status, 422);
    assert!(refused.body.contains("<h2>The page was not captured again</h2>"), "{}", refused.body);
    assert_eq!(refused.body.matches("the team has none left").count(), 1, "{}", refused.body);
    assert!(refused.body.contains("Ask your administrator for credits."), "{}", refused.body);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn capture_whose_options_are_not_kept_is_repeated_through_the_form() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = team_of(&app, "ada@example.com", 0).await?;
    let fields = [("url", "https://example.com/a"), ("environment", "test"), ("headers", "X-Token: hidden-1")];
    let page = capture(&mut ada, team, &fields).await?.location().to_owned();
    let shown = ada.get(&page).await?;
    assert!(!shown.body.contains("/retake\"") && !shown.body.contains("hidden-1"), "{}", shown.body);
    let before = shown.body.split("\">Retake and compare…</a>").next().context("a link")?;
    let link = before.rsplit("href=\"").next().context("a link")?.replace("&#38;", "&");
    let id = page.rsplit('/').next().unwrap_or_default();
    assert!(link.contains(&format!("compare_to={id}")), "{link}");
    let form = ada.get(&link).await?.body;
    assert!(form.contains(&format!("value=\"{id}\"")) && form.contains("https://example.com/a"), "{form}");
    // A form that is sent all the same leads there, and captures nothing.
    let form_token = shown.hidden_field("form_token")?;
    let sent = ada.post(&format!("{page}/retake"), &[("form_token", &form_token), ("once", "a")]).await?;
    assert_eq!((sent.status, sent.location()), (303, &*link));
    // Without its image nothing can be compared with it.
    let plain = placeholder(&mut ada, team, "https://example.com/").await?;
    let retaken = retake(&mut ada, &plain).await?;
    let shown = ada.get(retaken.location()).await?.body;
    assert!(shown.contains("<strong>Nothing changed</strong> since"), "{shown}");
    ada.post(&format!("{plain}/delete"), &[("form_token", &form_token)]).await?;
    let refused = ada.post(&format!("{plain}/retake"), &[("form_token", &form_token), ("once", "b")]).await?;
    assert!(refused.status == 422 && refused.body.contains("whose image was deleted"), "{}", refused.body);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn figures_of_two_existing_captures_are_those_of_compare_to() -> Result<()> {
    let app = start_capturing_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = team_of(&app, "ada@example.com", 3).await?;
    let key = key_of(&app, "ada@example.com", Environment::Live).await?;
    let html = |top: u32| {
        let lines: String = (0..30).map(|line| format!("<p>Line {line} of {}</p>", line * 7919)).collect();
        format!(
            "<!DOCTYPE html><style>* {{ margin: 0 }} p {{ font: 16px/24px monospace; height: 24px }}</style>\
             <div style='height:{top}px;background:#246'></div>{lines}"
        )
    };
    let body = |top| json!({ "html": html(top), "width": 800, "full_page": true });
    let before = create(&app, &key, &body(0)).await?;
    let mut with_difference = body(48);
    with_difference["compare_to"] = before["id"].clone();
    let known = create(&app, &key, &with_difference).await?;
    let after = create(&app, &key, &body(48)).await?;
    let expected = regions(&known["difference"]);
    assert!(!expected.is_empty(), "{known}");
    let ratio = known["difference"]["ratio"].as_f64().context("a ratio")?;
    // In whichever order they are selected, and from memory at the second time.
    for ids in [[id(&before), id(&after)], [id(&after), id(&before)], [id(&known), id(&before)]] {
        let page = compared(&mut ada, team, ids).await?;
        assert_eq!(outlined(&page), expected, "{page}");
        let summary = text(&page, "<p class=\"changed\"><strong>", "</strong>")?;
        let percent: f64 = summary.split(' ').next().unwrap_or_default().parse()?;
        assert!((percent - ratio * 100.0).abs() < 0.1, "{summary} {ratio}");
        // The image of the difference is beside them if the newer one was compared with the older.
        let images = if ids[0] == id(&known) { 3 } else { 2 };
        assert_eq!(page.matches("<img ").count(), images, "{page}");
    }
    let same = compared(&mut ada, team, [id(&known), id(&after)]).await?;
    assert!(same.contains("<strong>Nothing changed.</strong>") && outlined(&same).is_empty(), "{same}");

    // Captures of another team are unknown, also together with an own one.
    let mut eve = Visitor::with_account(&app, "eve@example.com").await?;
    let hers = team_of(&app, "eve@example.com", 0).await?;
    let own = placeholder(&mut eve, hers, "https://example.com/").await?;
    let own = own.rsplit('/').next().unwrap_or_default();
    for ids in [[own, id(&before)], [id(&before), id(&after)]] {
        let path = format!("/teams/{hers}/grabs/compare?grab={}&grab={}", ids[0], ids[1]);
        let refused = eve.get(&path).await?;
        assert!(refused.status == 404 && !refused.body.contains("/i/"), "{}", refused.body);
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn placeholders_are_compared_afterwards_too() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = team_of(&app, "ada@example.com", 0).await?;
    let key = key_of(&app, "ada@example.com", Environment::Test).await?;
    let before = create(&app, &key, &json!({ "url": "https://example.com/" })).await?;
    // Placeholders show their size.
    let body = json!({ "url": "https://example.com/", "height": 700, "compare_to": before["id"] });
    let known = create(&app, &key, &body).await?;
    let after = create(&app, &key, &json!({ "url": "https://example.com/", "height": 700 })).await?;
    let page = compared(&mut ada, team, [id(&before), id(&after)]).await?;
    assert_eq!(outlined(&page), regions(&known["difference"]), "{page}");
    assert!(!outlined(&page).is_empty());
    // Several comparisons at the same time give the same.
    let cookies = &ada.cookies;
    let pages = futures::stream::iter(0..6).map(|_| async {
        let mut visitor = Visitor::new(&app);
        visitor.cookies.clone_from(cookies);
        compared(&mut visitor, team, [id(&known), id(&after)]).await
    });
    let pages: Vec<Result<String>> = pages.buffer_unordered(6).collect().await;
    for page in pages {
        assert!(page?.contains("Nothing changed."));
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn live_capture_without_credits_says_so_once_and_offers_test_mode() -> Result<()> {
    let app = start_app(&[("service.support", "help@example.com")]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = team_of(&app, "ada@example.com", 0).await?;
    let fields = [("url", "https://example.com/"), ("environment", "live")];
    for part in [&[][..], &[("part", "result")]] {
        let refused = capture(&mut ada, team, &[&fields[..], part].concat()).await?;
        assert_eq!(refused.status, 422);
        assert_eq!(refused.body.matches("the team has none left").count(), 1, "{}", refused.body);
        assert!(refused.body.contains("<a href=\"mailto:help@example.com\">Ask support for credits</a>"));
        assert!(refused.body.contains("name=\"use_test_mode\" value=\"true\">Use test mode"), "{}", refused.body);
    }
    let done = capture(&mut ada, team, &[&fields[..], &[("use_test_mode", "true")]].concat()).await?;
    assert_eq!(done.status, 303, "{}", done.body);
    assert!(ada.get(done.location()).await?.body.contains("Placeholder image"));
    app.finish().await
}
