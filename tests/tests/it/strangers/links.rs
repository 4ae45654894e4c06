//! Published links: whoever opens them uses up nothing that the API of their team needs.

use std::time::Duration;

use anyhow::{Result, ensure};
use futures::future::try_join_all;
use grabd_domain::credentials::{Scope, Scopes};
use grabd_engine::accounts::{self, KeyLimits};
use grabd_engine::clock::Clock;
use grabd_tests::harness::TestApp;
use serde_json::json;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use super::{FORWARDED, TRUSTED};
use crate::links::{header, sign, signer};

const EXPIRES_IN_S: i64 = 60 * 60;

fn expires() -> String {
    (Clock::system().now().as_ms() / 1000 + EXPIRES_IN_S).to_string()
}

/// Opens a link from an address.
async fn open_from(app: &TestApp, address: &str, query: &str) -> Result<reqwest::Response> {
    let request = app.client.get(format!("{}/shot?{query}", app.base())).header(FORWARDED, address);
    Ok(request.send().await?)
}

#[tokio::test(flavor = "multi_thread")]
async fn stranger_who_opens_a_link_takes_nothing_from_the_limit_of_its_team() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[("limits.requests_per_minute", "6"), TRUSTED]).await?;
    let signer = signer(&app, app.team.test_id).await?;
    let (url, expires) = ("https://example.com/published", expires());
    let published = sign(&signer, &[("url", url), ("expires", &expires)]);
    // One that captures each time, and is refused when the limit of its key is used up.
    let always_new = sign(&signer, &[("url", url), ("max_age", "0"), ("expires", &expires)]);
    let (mut redirects, mut refused) = (0, 0);
    for round in 0..60 {
        let query = if round % 2 == 0 { &published } else { &always_new };
        let answer = open_from(&app, "203.0.113.9", query).await?;
        match answer.status().as_u16() {
            302 => redirects += 1,
            429 => {
                ensure!(!header(&answer, "retry-after").is_empty());
                refused += 1;
            }
            other => anyhow::bail!("{other} {}", answer.text().await?),
        }
    }
    assert!(redirects > 30 && refused > 0, "{redirects} redirects, {refused} refused");
    for left in (0..6).rev() {
        let usage = app.client.get(format!("{}/usage", app.base())).bearer_auth(app.test()).send().await?;
        assert_eq!((usage.status().as_u16(), header(&usage, "x-ratelimit-remaining")), (200, left.to_string()));
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn address_that_opens_links_too_often_is_refused_and_others_are_not() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[("limits.requests_per_minute", "6"), TRUSTED]).await?;
    let signer = signer(&app, app.team.test_id).await?;
    let published = sign(&signer, &[("url", "https://example.com/"), ("expires", &expires())]);
    let mut statuses = Vec::new();
    for number in 0..200 {
        // One /64 of IPv6.
        let answer = open_from(&app, &format!("2001:db8:7:1::{number:x}"), &published).await?;
        statuses.push(answer.status().as_u16());
        if statuses.last() == Some(&429) {
            break;
        }
    }
    assert_eq!((statuses.first(), statuses.last()), (Some(&302), Some(&429)), "{statuses:?}");
    assert!(statuses.len() > 50, "a page may show many links: {}", statuses.len());
    assert_eq!(open_from(&app, "203.0.113.9", &published).await?.status(), 302);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn links_of_one_key_do_not_use_up_those_of_another_key() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[("limits.requests_per_minute", "6"), TRUSTED]).await?;
    let (store, now) = (app.service.store(), Clock::system().now());
    let limits = KeyLimits { scopes: Scopes::ALL, life: None };
    let environment = grabd_domain::credentials::Environment::Test;
    let (other, _) = accounts::issue_restricted_key(store, app.team.team, environment, "other", limits, now).await?;
    let (first, second) = (signer(&app, app.team.test_id).await?, signer(&app, other).await?);
    let expires = expires();
    let new = |number: usize| {
        let url = format!("https://example.com/{number}");
        sign(&first, &[("url", &*url), ("expires", &*expires)])
    };
    let mut last = 302;
    for number in 0..20 {
        last = open_from(&app, "203.0.113.9", &new(number)).await?.status().as_u16();
    }
    assert_eq!(last, 429, "each of them makes a new image");
    assert_eq!(open_from(&app, "203.0.113.9", &new(0)).await?.status(), 302, "an earlier image is free");
    let query = sign(&second, &[("url", "https://example.com/second"), ("expires", &expires)]);
    assert_eq!(open_from(&app, "203.0.113.9", &query).await?.status(), 302);
    app.finish().await
}

/// A published page may break, and then each opening of its link is a render without an image.
#[tokio::test(flavor = "multi_thread")]
async fn link_to_a_page_that_fails_does_not_use_up_the_failed_time_of_its_account() -> Result<()> {
    let settings = [("abuse.failed_seconds_per_minute_unpaid", "1"), ("accounts.sign_up", "true"), TRUSTED];
    let app = TestApp::start(5, &settings).await?;
    let signer = signer(&app, app.team.live_id).await?;
    let url = app.site.url("/held/tiny");
    let broken = sign(&signer, &[("url", &*url), ("timeout_ms", "2000"), ("expires", &expires())]);
    let mut statuses = Vec::new();
    for _ in 0..2 {
        statuses.push(open_from(&app, "203.0.113.9", &broken).await?.status().as_u16());
    }
    assert_eq!(statuses, [500, 429], "the links of the account have used up their time");
    let (status, grab) = app.create(json!({ "url": app.site.url("/tiny") })).await?;
    assert_eq!(status, 200, "{grab}");
    app.finish().await
}

/// Links to slow pages do not take all slots, nor places in the queue before the API's captures.
#[tokio::test(flavor = "multi_thread")]
async fn links_to_slow_pages_leave_slots_to_the_api_of_their_team() -> Result<()> {
    let app = TestApp::start(20, &[("browser.slots", "2"), TRUSTED]).await?;
    let signer = signer(&app, app.team.live_id).await?;
    let (url, expires, tasks) = (app.site.url("/held/tiny"), expires(), TaskTracker::new());
    for _ in 0..8 {
        let query = sign(&signer, &[("url", &*url), ("max_age", "0"), ("expires", &*expires)]);
        let request = app.client.get(format!("{}/shot?{query}", app.base())).header(FORWARDED, "203.0.113.9");
        tasks.spawn(request.send());
    }
    app.site.wait_for_hits("/held/tiny", 1).await;
    let creates = (0..3).map(|_| app.create(json!({ "url": app.site.url("/tiny") })));
    let created = timeout(Duration::from_secs(20), try_join_all(creates)).await??;
    assert!(created.iter().all(|(status, _)| *status == 200), "{created:?}");
    assert_eq!(app.site.hits("/held/tiny"), 1, "half of the slots");
    app.client.post(app.site.url("/held/tiny")).send().await?.error_for_status()?;
    tasks.close();
    tasks.wait().await;
    app.finish().await
}

/// What a key may not read, its links do not show.
#[tokio::test(flavor = "multi_thread")]
async fn link_of_a_key_without_read_shows_its_own_images_only() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[]).await?;
    let (store, now) = (app.service.store(), Clock::system().now());
    let scopes = Scopes::new([Scope::Create]).expect("one scope");
    let environment = grabd_domain::credentials::Environment::Test;
    let limits = KeyLimits { scopes, life: None };
    let (restricted, _) =
        accounts::issue_restricted_key(store, app.team.team, environment, "links", limits, now).await?;
    let (all, own) = (signer(&app, app.team.test_id).await?, signer(&app, restricted).await?);
    let expires = expires();
    let members = [("url", "https://example.com/"), ("expires", &*expires)];
    let location = async |query: &str| {
        let answer = open_from(&app, "203.0.113.9", query).await?;
        ensure!(answer.status() == 302, "{}", answer.text().await?);
        anyhow::Ok(header(&answer, "location"))
    };
    let others = location(&sign(&all, &members)).await?;
    let first = location(&sign(&own, &members)).await?;
    assert_ne!(first, others, "the image of another key");
    assert_eq!(location(&sign(&own, &members)).await?, first, "its own image");
    app.finish().await
}
