//! Captures through the pages: judged, charged, followed, shown and deleted as through the API.

use std::time::Duration;

use anyhow::{Context, Result};
use futures::StreamExt;
use grabd_domain::credentials::Environment;
use grabd_engine::accounts;
use grabd_engine::clock::Clock;
use grabd_tests::harness::{Harness, REFUSED};
use grabd_tests::pixels;
use reqwest::header::COOKIE;
use serde_json::{Value, json};

use super::team::{capture, placeholder, team_of};
use super::visitor::{Visitor, open_house};

/// How long an event may take to come. It only bounds a test that fails.
const PATIENCE: Duration = Duration::from_secs(40);

/// A key of somebody's team.
async fn key_of(house: &Harness, email: &str, environment: Environment) -> Result<String> {
    let team = team_of(house, email, 0).await?;
    let (_, key) = accounts::issue_key(house.service.store(), team, environment, "x", Clock::system().now()).await?;
    Ok(key.expose().to_owned())
}

async fn credits(house: &Harness, key: &str) -> Result<i64> {
    house.get("/usage", key).await?.1["credits"]["total"].as_i64().context("credits")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_captured_is_said_beside_its_field() -> Result<()> {
    let house = open_house(&[]).await?;
    let mut ada = Visitor::with_account(&house, "ada@example.com").await?;
    let team = team_of(&house, "ada@example.com", 0).await?;
    let refused = format!("http://{REFUSED}/");
    for (field, value, said) in [
        ("url", "", "Write the address of a page."),
        ("url", "ftp://example.com", "must be an absolute http(s) URL"),
        ("url", &*refused, "not public"),
        ("width", "319", "must be an integer from 320 to 1920; it was 319."),
        ("height", "tall", "must be an integer from 240 to 1080; it was &#34;tall&#34;."),
        ("format", "gif", "must be one of"),
        ("delay_ms", "10001", "must be an integer from 0 to 10000"),
        ("selector", &"a".repeat(1025), "must be a CSS selector of 1 to 1024 characters"),
        ("environment", "", "Choose whether"),
        // With no credits, nothing is captured live.
        ("environment", "live", "no live credits left"),
    ] {
        let mut fields = vec![("url", "https://example.com/"), ("environment", "test")];
        fields.retain(|(name, _)| *name != field);
        fields.push((field, value));
        let answer = capture(&mut ada, team, &fields).await?;
        assert_eq!(answer.status, 422, "{field}={value}");
        assert!(answer.body.contains(said), "{field}={value}: {}", answer.body);
        assert!(answer.body.contains(&format!("<a href=\"#{field}\">")), "{field}={value}");
        assert!(answer.body.contains(&format!("id=\"{field}-error\"")) || field == "environment", "{field}={value}");
    }
    let list = ada.get(&format!("/teams/{team}/grabs?environment=test")).await?;
    assert!(list.body.contains("Nothing is captured yet"), "{}", list.body);
    house.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_that_is_sent_twice_captures_once() -> Result<()> {
    let house = open_house(&[]).await?;
    let mut ada = Visitor::with_account(&house, "ada@example.com").await?;
    let team = team_of(&house, "ada@example.com", 5).await?;
    let path = format!("/teams/{team}/capture");
    let form = ada.get(&path).await?;
    let (form_token, once) = (form.hidden("form_token")?, form.hidden("once")?);
    let url = house.site.url("/tiny");
    let mut fields = vec![("form_token", &*form_token), ("once", &*once), ("url", &*url), ("environment", "live")];
    let first = ada.post(&path, &fields).await?;
    let again = ada.post(&path, &fields).await?;
    assert_eq!((first.status, again.status), (303, 303), "{} {}", first.body, again.body);
    assert_eq!(first.location(), again.location());
    fields.push(("width", "800"));
    let other = ada.post(&path, &fields).await?;
    assert!(other.status == 422 && other.body.contains("was sent before"), "{} {}", other.status, other.body);
    // What is shown then is a new form, which can be sent.
    let once = other.hidden("once")?;
    fields[1].1 = &once;
    assert_eq!(ada.post(&path, &fields).await?.status, 303);
    let key = key_of(&house, "ada@example.com", Environment::Live).await?;
    assert_eq!(house.get("/grabs", &key).await?.1["data"].as_array().map(Vec::len), Some(2));

    // Nobody else's page sends it.
    fields[0].1 = "forged";
    assert_eq!(ada.post(&path, &fields).await?.status, 403);
    fields[0].1 = &form_token;
    ada.headers.push(("sec-fetch-site", "cross-site".to_owned()));
    assert_eq!(ada.post(&path, &fields).await?.status, 403);
    assert_eq!(ada.post(&format!("{}/delete", first.location()), &fields[..1]).await?.status, 403);
    ada.headers.clear();
    drain(&house, &key).await?;
    house.finish().await
}

/// Waits until nothing of a key's team is under way.
async fn drain(house: &Harness, key: &str) -> Result<()> {
    for status in ["pending", "processing"] {
        let (_, list) = house.get(&format!("/grabs?status={status}"), key).await?;
        for grab in list["data"].as_array().into_iter().flatten() {
            let url = format!("{}/grabs/{}", house.base(), grab["id"].as_str().unwrap_or_default());
            house.client.get(url).bearer_auth(key).header("prefer", "wait=25").send().await?;
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_live_capture_is_followed_charged_once_and_deleted() -> Result<()> {
    let house = open_house(&[]).await?;
    let mut ada = Visitor::with_account(&house, "ada@example.com").await?;
    let team = team_of(&house, "ada@example.com", 5).await?;
    let key = key_of(&house, "ada@example.com", Environment::Live).await?;
    let url = house.site.url("/colour/29/122/62?after=1500");
    let answer = capture(&mut ada, team, &[("url", &url), ("environment", "live")]).await?;
    assert_eq!(answer.status, 303, "{}", answer.body);
    let page = answer.location().to_owned();

    let open = ada.get(&page).await?;
    assert!(open.body.contains("<noscript><meta http-equiv=\"refresh\""), "{}", open.body);
    assert!(open.header("content-security-policy").contains("script-src 'self'; connect-src 'self'"));
    let grab = page.rsplit('/').next().unwrap_or_default().to_owned();
    let list = ada.get(&format!("/teams/{team}/grabs")).await?;
    assert!(list.body.contains(&format!("data-events=\"/teams/{team}/grabs/events?grab={grab}\"")), "{}", list.body);
    // Both streams end by themselves, with the picture.
    let events = ada.get(&format!("{page}/events")).await?;
    assert_eq!(events.header("content-type"), "text/event-stream");
    assert!(events.body.contains("event: parts\n") && events.body.trim_end().contains("event: end"), "{}", events.body);
    assert!(events.body.contains("The picture is there.") && events.body.contains("src=\"/i/"), "{}", events.body);
    let cards = ada.get(&format!("/teams/{team}/grabs/events?grab={grab}")).await?;
    assert!(cards.body.contains(&format!("id=\"grab-{grab}\"")) && cards.body.contains("thumbnail"), "{}", cards.body);

    let done = ada.get(&page).await?;
    assert!(!done.body.contains("http-equiv=\"refresh\"") && !done.body.contains("data-events"), "{}", done.body);
    assert!(!done.header("content-security-policy").contains("script-src"));
    for words in ["The picture is there.", "HTTP status", "<dd>200</dd>", "1280 × 720", "curl -sS", "Bearer $KEY"] {
        assert!(done.body.contains(words), "{words}: {}", done.body);
    }
    let image = done.body.split("<img src=\"").nth(1).and_then(|rest| rest.split('"').next()).context("an image")?;
    let picture = ada.get(image).await?;
    assert_eq!((picture.status, picture.header("content-type")), (200, "image/png"));
    let small = format!("{}{page}/thumbnail", house.service.public_url());
    let cookie = format!("grabd_session={}", ada.session()?);
    let answer = house.client.get(&small).header(COOKIE, &cookie).send().await?;
    assert_eq!(answer.headers()["content-type"], "image/jpeg");
    let tag = answer.headers()["etag"].clone();
    let thumbnail = pixels::decode(&answer.bytes().await?);
    assert_eq!(thumbnail.dimensions(), (480, 270));
    pixels::assert_all(&thumbnail, [29, 122, 62], pixels::LOSSY);
    let again = house.client.get(&small).header(COOKIE, &cookie).header("if-none-match", &tag).send().await?;
    assert_eq!(again.status(), 304);
    assert_eq!(credits(&house, &key).await?, 4);

    let question = ada.get(&format!("{page}/delete")).await?;
    let answer = ada.post(&format!("{page}/delete"), &[("form_token", &question.hidden("form_token")?)]).await?;
    assert_eq!((answer.status, answer.location()), (303, &*format!("{page}?deleted")));
    assert!(ada.get(answer.location()).await?.body.contains("The picture is deleted."));
    assert_eq!(ada.get(image).await?.status, 404);
    let gone = house.client.get(&small).header(COOKIE, &cookie).header("if-none-match", &tag).send().await?;
    assert_eq!(gone.status(), 404);
    assert_eq!(ada.get(&format!("{page}/delete")).await?.status, 303);
    assert_eq!(credits(&house, &key).await?, 4);
    house.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn who_signs_out_hears_nothing_more() -> Result<()> {
    let house = open_house(&[]).await?;
    let mut ada = Visitor::with_account(&house, "ada@example.com").await?;
    let team = team_of(&house, "ada@example.com", 5).await?;
    let key = key_of(&house, "ada@example.com", Environment::Live).await?;
    let url = house.site.url("/colour/29/122/62?after=4000");
    let page = capture(&mut ada, team, &[("url", &url), ("environment", "live")]).await?.location().to_owned();
    let request = house.client.get(format!("{}{page}/events", house.service.public_url()));
    let response = request.header(COOKIE, format!("grabd_session={}", ada.session()?)).send().await?;
    let mut stream = response.bytes_stream();
    let first = tokio::time::timeout(PATIENCE, stream.next()).await?.context("an event")??;
    assert!(String::from_utf8_lossy(&first).contains("event: parts"));
    let form_token = ada.get(&page).await?.hidden("form_token")?;
    assert_eq!(ada.post("/sign-out", &[("form_token", &form_token)]).await?.status, 303);
    let mut rest = Vec::new();
    while let Some(chunk) = tokio::time::timeout(PATIENCE, stream.next()).await? {
        rest.extend_from_slice(&chunk?);
    }
    let rest = String::from_utf8(rest)?;
    assert!(!rest.contains("The picture is there") && !rest.contains("event: end"), "{rest}");
    drain(&house, &key).await?;
    house.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_gallery_goes_back_and_forth() -> Result<()> {
    let house = open_house(&[]).await?;
    let mut ada = Visitor::with_account(&house, "ada@example.com").await?;
    let team = team_of(&house, "ada@example.com", 0).await?;
    let key = key_of(&house, "ada@example.com", Environment::Test).await?;
    for number in 0..50 {
        let url = format!("https://example.com/{number}");
        let request = house.client.post(format!("{}/grabs", house.base())).bearer_auth(&key);
        let grab: Value = request.json(&json!({ "url": url })).send().await?.json().await?;
        assert_eq!(grab["status"], "done", "{grab}");
    }
    placeholder(&mut ada, team, "https://broken.test/").await?;
    let cards = |body: &str| body.matches("class=\"card\"").count();
    let link = |body: &str, name: &str| {
        let before = body.split(&format!("\">{name}</a>")).next().filter(|before| before.len() < body.len());
        before.and_then(|before| before.rsplit("href=\"").next()).map(|path| path.replace("&#38;", "&"))
    };
    // Without an environment it is the one in which there is something.
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
    house.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pages_and_the_keys_of_a_team_share_one_limit() -> Result<()> {
    let settings = [("limits.requests_per_minute", "6"), ("http.trusted_proxies", "127.0.0.1/32")];
    let house = open_house(&settings).await?;
    let mut ada = Visitor::with_account(&house, "ada@example.com").await?;
    let team = team_of(&house, "ada@example.com", 0).await?;
    let key = key_of(&house, "ada@example.com", Environment::Test).await?;
    let mut admitted = 0;
    while house.get("/usage", &key).await?.0 == 200 {
        admitted += 1;
        assert!(admitted < 10, "the key has no limit");
    }
    let page = |environment: &'static str, network: u8| {
        let mut visitor = Visitor::new(&house);
        visitor.cookies.clone_from(&ada.cookies);
        visitor.headers.push(("x-forwarded-for", format!("203.0.113.{network}")));
        async move { visitor.get(&format!("/teams/{team}/grabs?environment={environment}")).await }
    };
    let refused = page("test", 1).await?;
    assert_eq!(refused.status, 429);
    assert!(refused.body.contains("Your team has asked for this too often"), "{}", refused.body);
    assert!((1..=10).contains(&refused.header("retry-after").parse::<u64>()?));
    // The other environment has a limit of its own, which pages use up as keys do.
    let mut admitted = 0;
    while page("live", 2 + admitted).await?.status == 200 {
        admitted += 1;
        assert!(admitted < 10, "pages are not counted");
    }
    assert!(admitted >= 6, "{admitted}");
    ada.headers.clear();
    house.finish().await
}
