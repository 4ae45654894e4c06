//! Limits of the service are waited for, and nothing is charged twice on the way.

use std::time::{Duration, Instant};

use crate::rig::Rig;

#[tokio::test(flavor = "multi_thread")]
async fn the_rate_limit_is_waited_for() {
    // Sixty at once, then one each second, for which all jobs wait together: more often than each would try again.
    let rig = Rig::start(0, &[("limits.requests_per_minute", "60")]).await;
    let urls: Vec<String> = (0..72).map(|number| format!("https://example.com/{number}")).collect();
    let args: Vec<&str> = urls.iter().map(String::as_str).chain(["-o", "shots/", "--jobs", "12"]).collect();
    let began = Instant::now();
    let said = rig.test(&args).await.ends(0);
    assert!(said.stderr.contains("72 captured of 72 pages"), "{}", said.stderr);
    assert!(began.elapsed() > Duration::from_secs(10), "twelve had to wait");
    rig.harness.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_key_is_answered_the_same_and_charged_once() {
    let rig = Rig::start(5, &[]).await;
    let url = rig.harness.site.url("/tiny");
    let args = [url.as_str(), "--idempotency-key", "one", "--json", "--no-download"];
    let (first, second) = (rig.live(&args).await.ends(0), rig.live(&args).await.ends(0));
    assert_eq!(first.json(), second.json());
    let left = rig.live(&["usage", "--json"]).await.ends(0).json().remove(0);
    assert_eq!(left["credits"]["total"], 4);
    rig.harness.finish().await.unwrap();
}
