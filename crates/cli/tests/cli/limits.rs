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
async fn fifty_pages_are_queued_and_waited_for_at_the_default_limits() {
    let rig = Rig::start(50, &[("limits.requests_per_minute", "60")]).await;
    let urls: Vec<String> = (0..50).map(|number| rig.harness.site.url(&format!("/tiny?page={number}"))).collect();
    let args: Vec<&str> = urls.iter().map(String::as_str).chain(["--wait", "50", "--jobs", "50"]).collect();
    let output = rig.live(&args).await.expect_exit(0);
    assert!(output.stderr.contains("50 captured of 50 pages"), "{}", output.stderr);
    rig.harness.finish().await.unwrap();
}

/// Only waits have a limit of one here, ten a minute, and requests of one a minute are used up.
#[tokio::test(flavor = "multi_thread")]
async fn wait_and_watch_go_on_while_the_limit_of_waits_is_used_up() {
    let rig = Rig::start(5, &[("limits.requests_per_minute", "1")]).await;
    let url = rig.harness.site.url("/slow/3000");
    let id = rig.live(&[url.as_str(), "--async"]).await.expect_exit(0).text().trim().to_owned();
    let events = format!("{}/grabs/{id}", rig.harness.base());
    // Ten waits at once, and one more every six seconds.
    loop {
        let wait = rig.harness.client.get(&events).bearer_auth(rig.harness.live()).header("prefer", "wait=1");
        let response = wait.send().await.unwrap();
        if response.status() == 429 {
            assert_eq!(response.headers()["ratelimit-policy"], "\"waits\";q=10;w=60");
            let message = response.text().await.unwrap();
            assert!(message.contains("10 may begin in a minute"), "{message}");
            break;
        }
    }
    let output = rig.live(&["watch", &id, "--retries", "0"]).await.expect_exit(0);
    assert!(output.text().contains("done"), "{}", output.text());
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
