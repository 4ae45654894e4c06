//! The rate limit and what it says.

use anyhow::Result;
use grabd_tests::harness::Harness;

#[tokio::test(flavor = "multi_thread")]
async fn a_team_has_its_minute_and_its_neighbours_theirs() -> Result<()> {
    let harness = Harness::start(0, &[("limits.requests_per_minute", "5")]).await?;
    let usage = format!("{}/usage", harness.base());
    for left in (0..5).rev() {
        let response = harness.client.get(&usage).bearer_auth(harness.live()).send().await?;
        assert_eq!(response.status(), 200);
        let headers = response.headers();
        assert_eq!(headers["ratelimit-policy"], "\"default\";q=5;w=60");
        assert_eq!(headers["x-ratelimit-limit"], "5");
        assert_eq!(headers["x-ratelimit-remaining"].to_str()?, left.to_string());
    }
    let response = harness.client.get(&usage).bearer_auth(harness.live()).send().await?;
    assert_eq!(response.status(), 429);
    let wait: u64 = response.headers()["retry-after"].to_str()?.parse()?;
    assert!((1..=12).contains(&wait), "{wait}");
    assert!(response.text().await?.contains("rate_limit_exceeded"));
    // The other environment, and those without a key, have buckets of their own.
    assert_eq!(harness.client.get(&usage).bearer_auth(harness.test()).send().await?.status(), 200);
    let pricing = format!("{}/pricing", harness.base());
    for _ in 0..5 {
        assert_eq!(harness.client.get(&pricing).send().await?.status(), 200);
    }
    assert_eq!(harness.client.get(&pricing).send().await?.status(), 429);
    // Images and health are no requests of the API.
    for _ in 0..10 {
        let health = format!("{}/healthz", harness.service.public_url());
        assert_eq!(harness.client.get(health).send().await?.status(), 200);
    }
    harness.finish().await
}
