//! Captures through the pages: validated, charged, watched, shown and deleted as through the API.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use futures::StreamExt;
use grabd_domain::Day;
use grabd_domain::credentials::Environment;
use grabd_engine::accounts;
use grabd_engine::clock::Clock;
use grabd_tests::harness::{REFUSED, TestApp};
use grabd_tests::{leftovers, pixels, programs};
use reqwest::header::COOKIE;
use serde_json::{Value, json};

use super::team::{capture, placeholder, team_of};
use super::visitor::{Visitor, start_app, start_capturing_app};

/// Time limit for an event. Only reached by failing tests.
const WAIT_LIMIT: Duration = Duration::from_secs(40);

/// Issues a key of a user's team.
pub(super) async fn key_of(app: &TestApp, email: &str, environment: Environment) -> Result<String> {
    let team = team_of(app, email, 0).await?;
    let (_, key) = accounts::issue_key(app.service.store(), team, environment, "x", Clock::system().now()).await?;
    Ok(key.expose().to_owned())
}

async fn credits(app: &TestApp, key: &str) -> Result<i64> {
    app.get("/usage", key).await?.1["credits"]["total"].as_i64().context("credits")
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_capture_shows_an_error_beside_the_field() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = team_of(&app, "ada@example.com", 0).await?;
    let refused = format!("http://{REFUSED}/");
    for (field, value, expected) in [
        ("url", "", "Enter a web address such as example.com."),
        ("url", "ftp://example.com", "Enter a web address such as example.com."),
        ("url", &*refused, "not public"),
        ("width", "319", "must be a whole number from 320 to 1920; it was 319."),
        ("height", "tall", "must be a whole number from 240 to 1080; it was tall."),
        ("format", "gif", "must be one of these: PNG, JPEG, WebP"),
        ("delay_ms", "10001", "must be a whole number from 0 to 10000"),
        ("selector", &"a".repeat(1025), "must be a CSS selector such as main of at most 1024 characters"),
        ("environment", "", "Choose a mode"),
    ] {
        let mut fields = vec![("url", "https://example.com/"), ("environment", "test")];
        fields.retain(|(name, _)| *name != field);
        fields.push((field, value));
        let answer = capture(&mut ada, team, &fields).await?;
        assert_eq!(answer.status, 422, "{field}={value}");
        assert!(answer.body.contains(expected), "{field}={value}: {}", answer.body);
        assert!(answer.body.contains(&format!("<a href=\"#{field}\">")), "{field}={value}");
        assert!(answer.body.contains(&format!("id=\"{field}-error\"")) || field == "environment", "{field}={value}");
    }
    let list = ada.get(&format!("/teams/{team}/grabs?environment=test")).await?;
    assert!(list.body.contains("No captures yet"), "{}", list.body);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_say_which_options_are_no_longer_kept() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = team_of(&app, "ada@example.com", 0).await?;
    let long = "a{} ".repeat(100);
    let fields = [("url", "https://example.com/"), ("environment", "test"), ("css", &*long), ("width", "999")];
    let page = capture(&mut ada, team, &fields).await?.location().to_owned();
    let shown = ada.get(&page).await?;
    assert!(shown.body.contains("a{} a{}") && !shown.body.contains("o longer kept"), "{}", shown.body);
    let store = app.service.store();
    let tomorrow = Clock::system().now() + Duration::from_secs(24 * 60 * 60);
    let progress = store.retention().request_progress(tomorrow).await?;
    assert_eq!(store.retention().shorten_requests(progress, tomorrow, tomorrow, 9).await?.shortened, 1);
    let shown = ada.get(&page).await?;
    for expected in ["no longer kept (SHA-<wbr>256 ", "No longer kept, and missing here: CSS."] {
        assert!(shown.body.contains(expected), "{expected}: {}", shown.body);
    }
    assert!(!shown.body.contains("a{} a{}"), "{}", shown.body);
    // Capturing again fills in the rest.
    let again =
        shown.body.split("href=\"").find_map(|link| link.split('"').next().filter(|link| link.contains("/capture?")));
    let form = ada.get(&again.context("a link")?.replace("&amp;", "&").replace("&#38;", "&")).await?;
    assert!(
        form.body.contains("No longer kept of the earlier capture: CSS.") && form.body.contains("999"),
        "{}",
        form.body
    );
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn capture_form_sent_twice_captures_once() -> Result<()> {
    let app = start_capturing_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = team_of(&app, "ada@example.com", 5).await?;
    let path = format!("/teams/{team}/capture");
    let form = ada.get(&path).await?;
    let (form_token, once) = (form.hidden_field("form_token")?, form.hidden_field("once")?);
    let url = app.site.url("/tiny");
    let mut fields = vec![("form_token", &*form_token), ("once", &*once), ("url", &*url), ("environment", "live")];
    let first = ada.post(&path, &fields).await?;
    let again = ada.post(&path, &fields).await?;
    assert_eq!((first.status, again.status), (303, 303), "{} {}", first.body, again.body);
    assert_eq!(first.location(), again.location());
    fields.push(("width", "800"));
    let other = ada.post(&path, &fields).await?;
    assert!(other.status == 422 && other.body.contains("was already submitted"), "{} {}", other.status, other.body);
    // The response contains a new form, which can be submitted.
    let once = other.hidden_field("once")?;
    fields[1].1 = &once;
    assert_eq!(ada.post(&path, &fields).await?.status, 303);
    let key = key_of(&app, "ada@example.com", Environment::Live).await?;
    assert_eq!(app.get("/grabs", &key).await?.1["data"].as_array().map(Vec::len), Some(2));

    // Forged forms are refused.
    fields[0].1 = "forged";
    assert_eq!(ada.post(&path, &fields).await?.status, 403);
    fields[0].1 = &form_token;
    ada.headers.push(("sec-fetch-site", "cross-site".to_owned()));
    assert_eq!(ada.post(&path, &fields).await?.status, 403);
    assert_eq!(ada.post(&format!("{}/delete", first.location()), &fields[..1]).await?.status, 403);
    ada.headers.clear();
    drain(&app, &key).await?;
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn form_shows_the_code_of_its_options_without_secrets() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = team_of(&app, "ada@example.com", 5).await?;
    let form = ada.get(&format!("/teams/{team}/capture?device=phone")).await?;
    // The quotes of JSON are escaped.
    assert!(form.body.contains("https://example.com/&#34;,&#34;device&#34;:&#34;phone"), "{}", form.body);
    let (form_token, path) = (form.hidden_field("form_token")?, format!("/teams/{team}/capture/code"));
    let url = "https://example.com/\"<b>";
    let fields =
        [("form_token", &*form_token), ("url", url), ("headers", "X-Token: hidden-1"), ("environment", "test")];
    let page = ada.post(&path, &fields).await?;
    assert_eq!(page.status, 200);
    assert!(page.body.contains("<title>New capture") && page.body.contains("a test key"), "{}", page.body);
    assert!(page.body.contains("passwords are left out") && !page.body.contains("hidden-1"), "{}", page.body);
    assert!(!page.body.contains("<b>"), "{}", page.body);
    let part = ada.post(&path, &[&fields[..], &[("part", "code"), ("width", "10")]].concat()).await?;
    assert!(part.status == 200 && !part.body.contains("<title>"), "{}", part.body);
    assert!(part.body.contains("Width must be") && !part.body.contains("figure"), "{}", part.body);
    app.finish().await
}

/// Waits until no grab of a key's team is open.
async fn drain(app: &TestApp, key: &str) -> Result<()> {
    for status in ["pending", "processing"] {
        let (_, list) = app.get(&format!("/grabs?status={status}"), key).await?;
        for grab in list["data"].as_array().into_iter().flatten() {
            let url = format!("{}/grabs/{}", app.base(), grab["id"].as_str().unwrap_or_default());
            app.client.get(url).bearer_auth(key).header("prefer", "wait=25").send().await?;
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn live_capture_is_watched_charged_once_and_deleted() -> Result<()> {
    let app = start_capturing_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = team_of(&app, "ada@example.com", 5).await?;
    let key = key_of(&app, "ada@example.com", Environment::Live).await?;
    let url = app.site.url("/colour/29/122/62?after=1500");
    let answer = capture(&mut ada, team, &[("url", &url), ("environment", "live")]).await?;
    assert_eq!(answer.status, 303, "{}", answer.body);
    let page = answer.location().to_owned();

    let open = ada.get(&page).await?;
    assert!(open.body.contains("<noscript><meta http-equiv=\"refresh\""), "{}", open.body);
    let stages = open.body.split("<ol class=\"stages\"").nth(1).and_then(|rest| rest.split("</ol>").next());
    assert_eq!(stages.context("a list of stages")?.matches("<li").count(), 4, "{}", open.body);
    assert!(open.header("content-security-policy").contains("connect-src 'self'"));
    let grab = page.rsplit('/').next().unwrap_or_default().to_owned();
    let list = ada.get(&format!("/teams/{team}/grabs")).await?;
    assert!(list.body.contains(&format!("data-events=\"/teams/{team}/grabs/events?grab={grab}\"")), "{}", list.body);
    // Both streams end by themselves, with the image.
    let events = ada.get(&format!("{page}/events")).await?;
    assert_eq!(events.header("content-type"), "text/event-stream");
    assert!(events.body.contains("event: parts\n") && events.body.trim_end().contains("event: end"), "{}", events.body);
    assert!(events.body.contains("Captured in") && events.body.contains("src=\"/i/"), "{}", events.body);
    assert!(events.body.contains("<li class=\"reached\">Page requested <span>after "), "{}", events.body);
    let cards = ada.get(&format!("/teams/{team}/grabs/events?grab={grab}")).await?;
    assert!(cards.body.contains(&format!("id=\"grab-{grab}\"")) && cards.body.contains("thumbnail"), "{}", cards.body);

    let done = ada.get(&page).await?;
    assert!(!done.body.contains("http-equiv=\"refresh\"") && !done.body.contains("data-events"), "{}", done.body);
    assert!(!done.header("content-security-policy").contains("connect-src"));
    for words in ["Captured in", "HTTP status", "<dd>200</dd>", "1280 × 720", "curl -sS", "Bearer $GRAB_API_KEY"] {
        assert!(done.body.contains(words), "{words}: {}", done.body);
    }
    let image = done.body.split("<img src=\"").nth(1).and_then(|rest| rest.split('"').next()).context("an image")?;
    let picture = ada.get(image).await?;
    assert_eq!((picture.status, picture.header("content-type")), (200, "image/png"));
    let small = format!("{}{page}/thumbnail", app.service.public_url());
    let cookie = format!("grabd_session={}", ada.session()?);
    let answer = app.client.get(&small).header(COOKIE, &cookie).send().await?;
    assert_eq!(answer.headers()["content-type"], "image/jpeg");
    let tag = answer.headers()["etag"].clone();
    let thumbnail = pixels::decode(&answer.bytes().await?);
    assert_eq!(thumbnail.dimensions(), (480, 270));
    pixels::assert_all(&thumbnail, [29, 122, 62], pixels::LOSSY);
    let stored = || anyhow::Ok(leftovers::files_below(&app.data_dir().join("images"))?.len());
    assert_eq!(stored()?, 2, "the thumbnail is stored beside the image");
    let again = app.client.get(&small).header(COOKIE, &cookie).header("if-none-match", &tag).send().await?;
    assert_eq!(again.status(), 304);
    assert_eq!(credits(&app, &key).await?, 4);

    let question = ada.get(&format!("{page}/delete")).await?;
    let answer = ada.post(&format!("{page}/delete"), &[("form_token", &question.hidden_field("form_token")?)]).await?;
    assert_eq!((answer.status, answer.location()), (303, &*format!("{page}?deleted")));
    assert!(ada.get(answer.location()).await?.body.contains("The image was deleted."));
    assert_eq!(ada.get(image).await?.status, 404);
    assert_eq!(stored()?, 0);
    let gone = app.client.get(&small).header(COOKIE, &cookie).header("if-none-match", &tag).send().await?;
    assert_eq!(gone.status(), 404);
    assert_eq!(ada.get(&format!("{page}/delete")).await?.status, 303);
    assert_eq!(credits(&app, &key).await?, 4);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn sign_out_ends_event_streams() -> Result<()> {
    let app = start_capturing_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = team_of(&app, "ada@example.com", 5).await?;
    let key = key_of(&app, "ada@example.com", Environment::Live).await?;
    let url = app.site.url("/colour/29/122/62?after=4000");
    let page = capture(&mut ada, team, &[("url", &url), ("environment", "live")]).await?.location().to_owned();
    let request = app.client.get(format!("{}{page}/events", app.service.public_url()));
    let response = request.header(COOKIE, format!("grabd_session={}", ada.session()?)).send().await?;
    let mut stream = response.bytes_stream();
    let first = tokio::time::timeout(WAIT_LIMIT, stream.next()).await?.context("an event")??;
    assert!(String::from_utf8_lossy(&first).contains("event: parts"));
    let form_token = ada.get(&page).await?.hidden_field("form_token")?;
    assert_eq!(ada.post("/sign-out", &[("form_token", &form_token)]).await?.status, 303);
    let mut rest = Vec::new();
    while let Some(chunk) = tokio::time::timeout(WAIT_LIMIT, stream.next()).await? {
        rest.extend_from_slice(&chunk?);
    }
    let rest = String::from_utf8(rest)?;
    assert!(!rest.contains("Captured in") && !rest.contains("event: end"), "{rest}");
    drain(&app, &key).await?;
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn gallery_is_paged_in_both_directions() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = team_of(&app, "ada@example.com", 0).await?;
    let key = key_of(&app, "ada@example.com", Environment::Test).await?;
    for number in 0..50 {
        let url = format!("https://example.com/{number}");
        let request = app.client.post(format!("{}/grabs", app.base())).bearer_auth(&key);
        let grab: Value = request.json(&json!({ "url": url })).send().await?.json().await?;
        assert_eq!(grab["status"], "done", "{grab}");
    }
    placeholder(&mut ada, team, "https://broken.test/").await?;
    let cards = |body: &str| body.matches("class=\"card\"").count();
    let link = |body: &str, name: &str| {
        let before = body.split(&format!("\">{name}</a>")).next().filter(|before| before.len() < body.len());
        before.and_then(|before| before.rsplit("href=\"").next()).map(|path| path.replace("&#38;", "&"))
    };
    // Without a filter, the environment that contains grabs is shown.
    let first = ada.get(&format!("/teams/{team}/grabs")).await?;
    assert_eq!((cards(&first.body), link(&first.body, "Newer")), (24, None));
    let second = ada.get(&link(&first.body, "Older").context("older ones")?).await?;
    assert_eq!(cards(&second.body), 24);
    let third = ada.get(&link(&second.body, "Older").context("older ones")?).await?;
    assert_eq!((cards(&third.body), link(&third.body, "Older")), (3, None));
    let back = ada.get(&link(&third.body, "Newer").context("newer ones")?).await?;
    let back = ada.get(&link(&back.body, "Newer").context("newer ones")?).await?;
    assert_eq!((cards(&back.body), link(&back.body, "Newer")), (24, None));
    assert!(link(&back.body, "Older").is_some());

    for (query, count) in [("environment=test&status=failed", 1), ("environment=live", 0), ("environment=test", 24)] {
        assert_eq!(cards(&ada.get(&format!("/teams/{team}/grabs?{query}")).await?.body), count, "{query}");
    }
    for query in ["environment=prod", "status=ready", "starting_after=x", "starting_after=1&ending_before=2"] {
        assert_eq!(ada.get(&format!("/teams/{team}/grabs?{query}")).await?.status, 400, "{query}");
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn captures_are_found_by_url_and_day() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = team_of(&app, "ada@example.com", 0).await?;
    for url in ["https://example.com/Pricing?q=50%25", "https://example.org/", "https://broken.test/pricing"] {
        placeholder(&mut ada, team, url).await?;
    }
    let today = Day::of(Clock::system().now());
    let (tomorrow, yesterday) = (today.next(), today.before(1));
    for (query, expected) in [
        ("q=pricing".to_owned(), &["example.com/Pricing", "broken.test/pricing"][..]),
        ("q=PRICING&status=failed".to_owned(), &["broken.test/pricing"]),
        ("q=50%25".to_owned(), &["example.com/Pricing"]),
        ("q=https://example.".to_owned(), &["example.com/Pricing", "example.org"]),
        ("q=nowhere".to_owned(), &[]),
        (format!("from={yesterday}&until={tomorrow}&q=example.org"), &["example.org"]),
        (format!("from={today}"), &["example.com/Pricing", "example.org", "broken.test/pricing"]),
        (format!("from={}", tomorrow.next()), &[]),
        (format!("until={yesterday}"), &[]),
    ] {
        let page = ada.get(&format!("/teams/{team}/grabs?environment=test&{query}")).await?;
        assert_eq!(page.body.matches("class=\"card\"").count(), expected.len(), "{query}: {}", page.body);
        assert!(expected.iter().all(|title| page.body.contains(title)), "{query}");
        assert_eq!(page.body.contains("No captures found"), expected.is_empty(), "{query}");
        assert!(page.body.contains(">Clear</a>"), "{query}");
    }
    for query in ["from=yesterday", "until=2026-02-30"] {
        assert_eq!(ada.get(&format!("/teams/{team}/grabs?{query}")).await?.status, 400, "{query}");
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn search_of_many_captures_is_continued() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = team_of(&app, "ada@example.com", 0).await?;
    let key = key_of(&app, "ada@example.com", Environment::Test).await?;
    for number in 0..60 {
        let url = format!("https://{}.example/{number}", if number % 2 == 0 { "even" } else { "odd" });
        let request = app.client.post(format!("{}/grabs", app.base())).bearer_auth(&key);
        assert_eq!(request.json(&json!({ "url": url })).send().await?.status(), 200);
    }
    let mut path = format!("/teams/{team}/grabs?environment=test&q=EVEN");
    let mut found = Vec::new();
    for count in [24, 6] {
        let page = ada.get(&path).await?;
        let names = page.body.split("<bdi class=\"name\">").skip(1).filter_map(|rest| rest.split('<').next());
        let names: Vec<String> = names.map(str::to_owned).collect();
        assert_eq!(names.len(), count, "{path}");
        found.extend(names);
        let older = page.body.split("rel=\"next\" href=\"").nth(1).and_then(|rest| rest.split('"').next());
        path = older.unwrap_or_default().replace("&#38;", "&");
    }
    let expected: Vec<String> =
        (0..60).rev().filter(|number| number % 2 == 0).map(|n| format!("even.example/{n}")).collect();
    assert_eq!((found, path), (expected, String::new()));
    app.finish().await
}

/// Programs on a grab's page, as they stand.
#[tokio::test(flavor = "multi_thread")]
async fn programs_of_a_grab_repeat_it() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = team_of(&app, "ada@example.com", 0).await?;
    let key = key_of(&app, "ada@example.com", Environment::Test).await?;
    let request = json!({
        "url": "https://example.com/?a='b'&c=\"d\"", "width": 800, "full_page": true, "scale": 1.5,
        "selector": "a[title='it`s \"$KEY\" \\\\ $(id)']", "block": ["cookie_banners"], "metadata": { "a": "</code>" },
    });
    let create = app.client.post(format!("{}/grabs", app.base())).bearer_auth(&key).json(&request);
    let grab: Value = create.send().await?.json().await?;
    let id = grab["id"].as_str().with_context(|| grab.to_string())?;
    let page = ada.get(&format!("/teams/{team}/grabs/{id}")).await?;
    let directory = tempfile::tempdir()?;
    let programs = [
        ("curl", PathBuf::from("sh"), "sh"),
        ("JavaScript", programs::node(), "mjs"),
        ("Python", programs::root().join("target/python/bin/python"), "py"),
    ];
    for (language, program, extension) in programs {
        let start = format!("<figcaption>{language}</figcaption><pre tabindex=\"0\"><code>");
        let code = page.body.split(&start).nth(1).and_then(|rest| rest.split("</code>").next());
        let mut code = code.with_context(|| language.to_owned())?.to_owned();
        for (entity, text) in [("&#60;", "<"), ("&#62;", ">"), ("&#34;", "\""), ("&#39;", "'"), ("&#38;", "&")] {
            code = code.replace(entity, text);
        }
        let file = directory.path().join(format!("program.{extension}"));
        std::fs::write(&file, &code)?;
        let path = |path: &Path| path.to_string_lossy().into_owned();
        let arguments = [format!("GRAB_API_KEY={key}"), path(&program), path(&file)];
        let (succeeded, output) = programs::run(Path::new("env"), &arguments).await?;
        assert!(succeeded && output.contains("/i/"), "{language}: {output}\n{code}");
        let again = app.get("/grabs?limit=1", &key).await?.1["data"][0].clone();
        assert_ne!(again["id"], grab["id"], "{language}");
        for member in ["target_url", "width", "height", "format"] {
            assert_eq!(again[member], grab[member], "{language}");
        }
        let page = ada.get(&format!("/teams/{team}/grabs/{}", again["id"].as_str().unwrap_or_default())).await?;
        let shown = |body: &str| {
            body.split("<dt>URL</dt>").nth(1).and_then(|rest| rest.split("<dt>Created").next().map(str::to_owned))
        };
        let first = ada.get(&format!("/teams/{team}/grabs/{id}")).await?;
        assert_eq!(shown(&page.body), shown(&first.body), "{language}");
    }
    for language in ["Go", "Rust", "PHP"] {
        assert!(page.body.contains(&format!("<figcaption>{language}</figcaption>")), "{language}");
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_and_keys_of_a_team_share_one_rate_limit() -> Result<()> {
    let settings = [("limits.requests_per_minute", "6"), ("http.trusted_proxies", "127.0.0.1/32")];
    let app = start_app(&settings).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = team_of(&app, "ada@example.com", 0).await?;
    let key = key_of(&app, "ada@example.com", Environment::Test).await?;
    let mut admitted = 0;
    while app.get("/usage", &key).await?.0 == 200 {
        admitted += 1;
        assert!(admitted < 10, "the key has no limit");
    }
    let page = |environment: &'static str, network: u8| {
        let mut visitor = Visitor::new(&app);
        visitor.cookies.clone_from(&ada.cookies);
        visitor.headers.push(("x-forwarded-for", format!("203.0.113.{network}")));
        async move { visitor.get(&format!("/teams/{team}/grabs?environment={environment}")).await }
    };
    let refused = page("test", 1).await?;
    assert_eq!(refused.status, 429);
    assert!(refused.body.contains("Too many requests from your team"), "{}", refused.body);
    assert!((1..=10).contains(&refused.header("retry-after").parse::<u64>()?));
    // The other environment has a separate limit, which pages use as well.
    let mut admitted = 0;
    while page("live", 2 + admitted).await?.status == 200 {
        admitted += 1;
        assert!(admitted < 10, "pages are not counted");
    }
    assert!(admitted >= 6, "{admitted}");
    ada.headers.clear();
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn page_of_a_capture_shows_what_changed() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = team_of(&app, "ada@example.com", 0).await?;
    let first = placeholder(&mut ada, team, "https://example.com/one").await?;
    let id = first.rsplit('/').next().unwrap_or_default().to_owned();
    // Placeholders show their size.
    for (height, expected) in [("720", "Nothing changed"), ("700", " changed in ")] {
        let url = ("url", "https://example.com/one");
        let fields = [url, ("environment", "test"), ("height", height), ("compare_to", &*id)];
        let answer = capture(&mut ada, team, &fields).await?;
        assert_eq!(answer.status, 303, "{}", answer.body);
        let page = ada.get(answer.location()).await?.body;
        assert!(page.contains("<p class=\"changed\">") && page.contains(expected), "{page}");
        assert!(page.contains(&format!("<a href=\"{first}\">the earlier capture</a>")), "{page}");
        let shown = page.split("<img src=\"/f/").nth(1).and_then(|rest| rest.split('"').next());
        assert_eq!(shown.is_some(), expected != "Nothing changed", "{page}");
        if let Some(path) = shown {
            let image = ada.get(&format!("/f/{path}")).await?;
            assert_eq!((image.status, image.header("content-type")), (200, "image/png"));
        }
    }
    let fields = [("url", "https://example.com/"), ("environment", "live"), ("compare_to", &*id)];
    let refused = capture(&mut ada, team, &fields).await?;
    assert!(refused.status == 422 && refused.body.contains("id=\"compare_to-error\""), "{}", refused.body);
    app.finish().await
}
