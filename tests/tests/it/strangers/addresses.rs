//! One customer's network cannot use up what addresses without an account share.

use anyhow::Result;
use futures::{StreamExt, TryStreamExt, stream};
use grabd_tests::harness::TestApp;
use grabd_tests::visitor::start_app;
use reqwest::header::CONTENT_TYPE;

use super::{FORM, FORWARDED, TRUSTED, status_of};

/// Sends a request from each /64 of a /48. Returns how many were not refused with 429.
async fn flood(app: &TestApp, site: u16, networks: u16, path: &str, is_form: bool) -> Result<usize> {
    let requests = (0..networks).map(|network| async move {
        let url = format!("{}{path}", app.service.public_url());
        let request = match is_form {
            true => app.client.post(url).header(CONTENT_TYPE, FORM).body("email=a%40b.c"),
            false => app.client.get(url),
        };
        let request = request.header(FORWARDED, format!("2001:db8:{site:x}:{network:x}::1"));
        anyhow::Ok(request.send().await?.status() != 429)
    });
    stream::iter(requests).buffer_unordered(32).try_fold(0, async |sum, ok| Ok(sum + usize::from(ok))).await
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_of_one_ipv6_48_share_a_limit_on_every_open_path() -> Result<()> {
    let app = start_app(&[("limits.requests_per_minute", "5"), TRUSTED]).await?;
    let rows = [
        ("/v1/pricing", false),
        ("/v1/usage", false),
        ("/v1/shot?key=a&sig=b", false),
        ("/mcp", true),
        ("/sign-in", false),
        ("/sign-in", true),
        ("/sign-up", true),
        ("/forgotten-password", true),
        ("/new-password", true),
        ("/oauth/authorize", false),
        ("/v1/oauth/token", true),
        ("/v1/oauth/register", true),
        ("/", true),
        ("/docs", false),
    ];
    for (number, (path, is_form)) in rows.into_iter().enumerate() {
        let site = u16::try_from(number)? + 1;
        let admitted = flood(&app, site, 400, path, is_form).await?;
        assert!((5..300).contains(&admitted), "{path}: {admitted} of 400 networks of a /48 were admitted");
        let other = flood(&app, site + 0x100, 1, path, is_form).await?;
        assert_eq!(other, 1, "{path}: another /48");
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_thousand_addresses_do_not_refuse_another_one() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[TRUSTED, ("limits.requests_per_minute", "2")]).await?;
    // Three for each of 20,000 /48, which is more than are stored.
    let pricing = format!("{}/v1/pricing?provider=none", app.service.public_url());
    let requests = (0..60_000_u32).map(|number| {
        let address = format!("2001:db8:{:x}:{:x}::1", number % 20_000, number / 20_000);
        let request = app.client.get(&pricing).header(FORWARDED, address);
        async move { anyhow::Ok(request.send().await?.status().as_u16()) }
    });
    let refused = stream::iter(requests)
        .buffer_unordered(64)
        .try_fold(0, async |sum, status| Ok(sum + usize::from(status == 429)))
        .await?;
    assert_eq!(refused, 0, "each had sent one request");
    assert_eq!(status_of(&app, "203.0.113.9", "/v1/pricing").await?, 200);
    app.finish().await
}
