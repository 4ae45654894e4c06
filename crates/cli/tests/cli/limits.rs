//! Rate limits and idempotency.

use std::time::{Duration, Instant};

use crate::rig::Rig;

#[tokio::test(flavor = "multi_thread")]
async fn rate_limited_captures_wait_and_succeed() {
    // Sixty requests at once, then one per second. Each job waits more often than the retry limit allows.
    let rig = Rig::start(0, &[("limits.requests_per_minute", "60")]).await;
    let urls: Vec<String> = (0..72).map(|number| format!("https://example.com/{number}")).collect();
    let args: Vec<&str> = urls.iter().map(String::as_str).chain(["-o", "shots/", "--jobs", "12"]).collect();
    let started = Instant::now();
    let output = rig.test(&args).await.expect_exit(0);
    assert!(output.stderr.contains("72 captured of 72 pages"), "{}", output.stderr);
    assert!(started.elapsed() > Duration::from_secs(10), "twelve captures must wait");
    rig.harness.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn repeated_idempotency_key_returns_the_same_capture_and_charges_once() {
    let rig = Rig::start(5, &[]).await;
    let url = rig.harness.site.url("/tiny");
    let args = [url.as_str(), "--idempotency-key", "one", "--json", "--no-download"];
    let (first, second) = (rig.live(&args).await.expect_exit(0), rig.live(&args).await.expect_exit(0));
    assert_eq!(first.json(), second.json());
    let usage = rig.live(&["usage", "--json"]).await.expect_exit(0).json().remove(0);
    assert_eq!(usage["credits"]["total"], 4);
    rig.harness.finish().await.unwrap();
}
