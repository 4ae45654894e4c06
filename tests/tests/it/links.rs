//! Signed links through the whole service.

use std::time::Duration;

use anyhow::{Context, Result};
use futures::future::join_all;
use grabd_domain::ids::KeyId;
use grabd_domain::links::LIFE;
use grabd_engine::clock::Clock;
use grabd_engine::links::{LinkCredentials, credentials};
use grabd_engine::vault::Vault;
use grabd_tests::harness::{REFUSED, TestApp};
pub(crate) use grabd_tests::links::sign;
use reqwest::Response;
use serde_json::{Value, json};

const HOUR_S: i64 = 60 * 60;

fn now_s() -> i64 {
    Clock::system().now().as_ms() / 1000
}

/// What signs the links of a key of the team.
pub(crate) async fn signer(app: &TestApp, key: KeyId) -> Result<LinkCredentials> {
    let vault = Vault::open(&app.data_dir().join("secrets.key"))?;
    credentials(app.service.store(), &vault, app.team.team, key).await?.context("the key is in use")
}

async fn open(app: &TestApp, query: &str) -> Result<Response> {
    Ok(app.client.get(format!("{}/shot?{query}", app.base())).send().await?)
}

pub(crate) fn header(response: &Response, name: &str) -> String {
    response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
}

async fn credits(app: &TestApp) -> Result<Value> {
    Ok(app.get("/usage", app.live()).await?.1["credits"]["total"].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn link_redirects_to_the_image_and_is_charged_once() -> Result<()> {
    let app = TestApp::start(5, &[]).await?;
    let signer = signer(&app, app.team.live_id).await?;
    let (url, expires) = (app.site.url("/tiny?a=b&c"), (now_s() + 48 * HOUR_S).to_string());
    let members = [("url", &*url), ("width", "640"), ("full_page", "true"), ("expires", &*expires)];
    let query = sign(&signer, &members);
    let first = open(&app, &query).await?;
    assert_eq!(first.status(), 302, "{}", first.text().await?);
    let image = header(&first, "location");
    assert!(image.starts_with(&format!("{}/i/", app.service.public_url())), "{image}");
    let fresh_s = |response: &Response| -> Result<i64> {
        Ok(header(response, "cache-control").trim_start_matches("public, max-age=").parse()?)
    };
    assert!((86_300..=86_400).contains(&fresh_s(&first)?), "{}", header(&first, "cache-control"));
    assert_eq!(header(&first, "cross-origin-resource-policy"), "cross-origin");
    assert!(header(&first, "ratelimit").starts_with("\"default\""));
    let shown = app.client.get(&image).send().await?;
    assert_eq!((shown.status().as_u16(), &*header(&shown, "content-type")), (200, "image/png"));
    assert_eq!(header(&shown, "content-disposition"), "");
    let saved = app.client.get(format!("{image}?download=my%20page")).send().await?;
    assert_eq!(header(&saved, "content-disposition"), "attachment; filename=\"my page.png\"");
    assert_eq!(saved.bytes().await?, shown.bytes().await?);

    let again = open(&app, &query).await?;
    assert_eq!((again.status().as_u16(), header(&again, "location")), (302, image.clone()));
    assert_eq!(header(&again, "etag"), header(&first, "etag"));
    assert!((86_300..=86_400).contains(&fresh_s(&again)?), "{}", header(&again, "cache-control"));
    assert_eq!(credits(&app).await?, json!(4));

    // A link that expires earlier, and one that accepts no earlier image.
    let soon = (now_s() + 60).to_string();
    let soon = sign(&signer, &[("url", &*url), ("width", "640"), ("full_page", "true"), ("expires", &*soon)]);
    let soon = open(&app, &soon).await?;
    assert_eq!(header(&soon, "location"), image);
    assert!((1..=60).contains(&fresh_s(&soon)?), "{}", header(&soon, "cache-control"));
    let new = open(&app, &sign(&signer, &[&members[..], &[("max_age", "0")]].concat())).await?;
    assert_eq!((new.status().as_u16(), &*header(&new, "cache-control")), (302, "public, max-age=0"));
    assert_ne!(header(&new, "location"), image);
    assert_eq!(credits(&app).await?, json!(3));
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn links_may_ask_for_slices() -> Result<()> {
    let app = TestApp::start(1, &[]).await?;
    let signer = signer(&app, app.team.live_id).await?;
    let (url, expires) = (app.site.url("/tiny"), (now_s() + HOUR_S).to_string());
    let query = sign(&signer, &[("url", &*url), ("slice_height", "300"), ("expires", &*expires)]);
    let image = header(&open(&app, &query).await?, "location");
    let (_, listed) = app.get("/grabs", app.live()).await?;
    let grab = &listed["data"][0];
    assert_eq!(grab["image_url"], json!(image));
    assert_eq!(grab["files"].as_array().map(Vec::len), Some(3), "{grab}");
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_openings_of_a_link_capture_once() -> Result<()> {
    let app = TestApp::start(5, &[]).await?;
    let signer = signer(&app, app.team.live_id).await?;
    let (url, expires) = (app.site.url("/slow/500"), (now_s() + HOUR_S).to_string());
    let query = sign(&signer, &[("url", &*url), ("expires", &*expires)]);
    let opened = join_all((0..8).map(|_| open(&app, &query))).await;
    let images: Vec<String> =
        opened.into_iter().map(|opened| Ok(header(&opened?, "location"))).collect::<Result<_>>()?;
    assert!(!images[0].is_empty() && images.iter().all(|image| *image == images[0]), "{images:?}");
    assert_eq!(credits(&app).await?, json!(4));
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn links_that_are_not_signed_or_have_expired_are_unauthorized() -> Result<()> {
    let app = TestApp::start(1, &[]).await?;
    let (live, test) = (signer(&app, app.team.live_id).await?, signer(&app, app.team.test_id).await?);
    let (url, expires) = (app.site.url("/tiny"), (now_s() + HOUR_S).to_string());
    let good = sign(&live, &[("url", &*url), ("expires", &*expires)]);
    let foreign = LinkCredentials { key: live.key, secret: test.secret.clone() };
    let past = sign(&live, &[("url", &*url), ("expires", "1000000000")]);
    let without = good.split("&sig=").next().unwrap_or_default().to_owned();
    for (query, part) in [
        (without, "is not signed"),
        (good.replace("tiny", "tall"), "does not match"),
        (good.replace("&expires", "&width=640&expires"), "does not match"),
        (format!("{good}&width=640"), "is not signed"),
        (sign(&foreign, &[("url", &*url), ("expires", &*expires)]), "does not match"),
        (past, "The link expired at 2001-09-09T01:46:40.000Z."),
        (String::new(), "is not signed"),
    ] {
        let answer = open(&app, &query).await?;
        assert_eq!((answer.status().as_u16(), &*header(&answer, "cache-control")), (401, "no-store"), "{query}");
        let body: Value = answer.json().await?;
        assert_eq!(body["error"]["code"], "unauthorized", "{query}");
        assert!(body["error"]["message"].as_str().is_some_and(|message| message.contains(part)), "{body}");
    }
    // A suspended team's links open nothing, and a revoked key's links neither.
    let (store, now) = (app.service.store(), Clock::system().now());
    store.accounts().suspend_team(app.team.team, "a reason", now).await?;
    let body: Value = open(&app, &good).await?.json().await?;
    assert!(body["error"]["message"].as_str().is_some_and(|message| message.contains("suspended")), "{body}");
    store.accounts().restore_team(app.team.team, now).await?;
    assert_eq!(open(&app, &good).await?.status(), 302);
    assert!(store.accounts().revoke_key(app.team.live_id, now).await?);
    assert_eq!(open(&app, &good).await?.status(), 401);
    let placeholder = open(&app, &sign(&test, &[("url", &*url), ("expires", &*expires)])).await?;
    assert_eq!(placeholder.status(), 302);
    assert_eq!(app.client.get(header(&placeholder, "location")).send().await?.status(), 200);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_links_name_the_member_and_failures_have_their_status() -> Result<()> {
    let app = TestApp::start(2, &[]).await?;
    let signer = signer(&app, app.team.live_id).await?;
    let (url, expires) = (app.site.url("/tiny"), (now_s() + HOUR_S).to_string());
    let far = (now_s() + HOUR_S + i64::try_from(LIFE.as_secs())?).to_string();
    let private = format!("http://{REFUSED}:8801/");
    let with = |name, value| vec![("url", &*url), ("expires", &*expires), (name, value)];
    let failing = app.site.url("/nocontent");
    for (members, status, code, part) in [
        (with("colour", "red"), 400, "bad_request", "\"colour\""),
        (with("width", "640"), 302, "", ""),
        (with("width", "wide"), 400, "invalid_viewport", "`width`"),
        (with("url", "x"), 400, "bad_request", "`url` must be given once"),
        (with("headers", "a: b"), 400, "bad_request", "`headers` must be left out of links"),
        (with("script", "1"), 400, "bad_request", "`script`"),
        (with("timeout_ms", "30000"), 400, "bad_request", "`timeout_ms`"),
        (vec![("url", &*url)], 400, "bad_request", "`expires`"),
        (vec![("url", &*url), ("expires", &*far)], 400, "bad_request", "at most 366 days"),
        (vec![("url", &*private), ("expires", &*expires)], 400, "ssrf_detected", "public address"),
        (vec![("url", &*failing), ("expires", &*expires)], 500, "render_failed", ""),
    ] {
        let query = sign(&signer, &members);
        let answer = open(&app, &query).await?;
        assert_eq!(answer.status().as_u16(), status, "{query}");
        if status != 302 {
            assert!(header(&answer, "ratelimit").starts_with("\"default\""), "{query}");
            let body: Value = answer.json().await?;
            assert_eq!(body["error"]["code"], code, "{body}");
            assert!(body["error"]["message"].as_str().is_some_and(|message| message.contains(part)), "{body}");
        }
        // The same as a picture.
        let picture = open(&app, &sign(&signer, &[&members[..], &[("on_error", "placeholder")]].concat())).await?;
        assert_eq!(picture.status().as_u16(), status, "{query}");
        if status != 302 {
            assert_eq!(
                (&*header(&picture, "content-type"), &*header(&picture, "cache-control")),
                ("image/svg+xml", "no-store")
            );
            let text = picture.text().await?;
            assert!(text.starts_with("<svg") && text.contains(code), "{text}");
        }
    }
    assert_eq!(credits(&app).await?, json!(1));
    for (path, status) in [("/tiny?a", 302), ("/tiny?b", 402)] {
        let query = sign(&signer, &[("url", &*app.site.url(path)), ("expires", &*expires)]);
        assert_eq!(open(&app, &query).await?.status(), status, "{path}");
    }
    let long = open(&app, &format!("url={}", "a".repeat(20_000))).await?;
    assert_eq!(long.status(), 400);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn new_captures_count_for_the_key_of_a_link_and_everything_for_the_address() -> Result<()> {
    let app = TestApp::start(1, &[("limits.requests_per_minute", "4")]).await?;
    let signer = signer(&app, app.team.live_id).await?;
    let (url, expires) = (app.site.url("/tiny"), (now_s() + HOUR_S).to_string());
    let query = sign(&signer, &[("url", &*url), ("expires", &*expires)]);
    let limit = |answer: &Response| (header(answer, "x-ratelimit-limit"), header(answer, "x-ratelimit-remaining"));
    let first = open(&app, &query).await?;
    assert_eq!((first.status().as_u16(), limit(&first)), (302, ("4".to_owned(), "3".to_owned())));
    // An earlier image is counted for the address only, which has ten times as many.
    for _ in 0..9 {
        let again = open(&app, &query).await?;
        assert_eq!((again.status().as_u16(), limit(&again).0), (302, "40".to_owned()));
    }
    for _ in 0..4 {
        assert_eq!(open(&app, "sig=a").await?.status(), 401);
    }
    assert_eq!(open(&app, "sig=a").await?.status(), 429);
    assert_eq!(open(&app, &query).await?.status(), 302, "a refused signature does not stop others of the address");
    for _ in 0..4 {
        assert_eq!(app.get("/usage", app.live()).await?.0, 200, "nothing was counted for the team");
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn links_work_over_a_grpc_connection() -> Result<()> {
    let app = TestApp::start(1, &[]).await?;
    let signer = signer(&app, app.team.live_id).await?;
    let (url, expires) = (app.site.url("/tiny"), (now_s() + HOUR_S).to_string());
    let query = sign(&signer, &[("url", &*url), ("expires", &*expires)]);
    let base = app.base_over_grpc().await?;
    let request = app.client.get(format!("{base}/shot?{query}")).timeout(Duration::from_secs(30));
    let answer = request.send().await?;
    assert_eq!(answer.status(), 302);
    assert!(header(&answer, "ratelimit").starts_with("\"default\""));
    app.finish().await
}
