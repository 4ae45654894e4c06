//! The metrics endpoint.

use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use grabd_tests::harness::TestApp;
use grabd_tests::scripted_renderer::ScriptedRenderer;
use serde_json::{Value, json};
use tokio::time::timeout;

/// The value of the sample with this name and these labels.
fn sample(text: &str, name: &str) -> Result<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.with_context(|| format!("{name} in:\n{text}"))?.parse().context("a number")
}

#[tokio::test(flavor = "multi_thread")]
async fn ended_grabs_and_refusals_are_counted_once() -> Result<()> {
    let app = TestApp::start(5, &[]).await?;
    let mut calls = Vec::new();
    for url in [
        app.site.url("/tiny"),
        app.site.url("/status/403"),
        // Refused by the URL alone, and by the redirect target.
        "http://10.0.0.1/".to_owned(),
        app.site.url("/redirect?to=http://127.0.0.1:8080/"),
    ] {
        calls.push(app.create(json!({ "url": url })).await?.0);
    }
    assert_eq!(calls, [200, 422, 400, 400]);

    // Webhook URLs pass the same guard.
    let request = app.client.post(format!("{}/webhooks", app.base())).bearer_auth(app.live());
    let refused = request.json(&json!({ "url": "https://10.0.0.1/" })).send().await?;
    assert_eq!(refused.status(), 400);

    let scrape = || app.client.get(format!("http://{}/metrics", app.service.metrics())).send();
    // A slot is free a moment after its capture has ended, when its page is gone.
    timeout(Duration::from_secs(20), async {
        while sample(&scrape().await?.text().await?, "grabd_queue_slots{state=\"busy\"}")? > 0.0 {}
        anyhow::Ok(())
    })
    .await??;
    let answer = scrape().await?;
    assert_eq!(answer.status(), 200);
    let media_type = answer.headers().get("content-type").context("a type")?.to_str()?.to_owned();
    assert_eq!(media_type, "application/openmetrics-text; version=1.0.0; charset=utf-8");
    let text = answer.text().await?;
    let ended = |result| format!("grabd_grabs_total{{environment=\"live\",mode=\"sync\",result=\"{result}\"}}");
    for result in ["done", "render_blocked", "ssrf_detected"] {
        assert_eq!(sample(&text, &ended(result))?, 1.0, "{result}");
    }
    assert_eq!(sample(&text, "grabd_grab_seconds_count{mode=\"sync\"}")?, 1.0);
    assert_eq!(sample(&text, "grabd_egress_refused_total{reason=\"url\"}")?, 2.0);
    assert!(sample(&text, "grabd_egress_refused_total{reason=\"address_own\"}")? >= 1.0);
    assert_eq!(sample(&text, "grabd_grabs_waiting{mode=\"async\"}")?, 0.0);
    assert_eq!(sample(&text, "grabd_queue_wait_seconds{mode=\"async\"}")?, 0.0);
    assert!(sample(&text, "grabd_queue_slots{state=\"free\"}")? >= 1.0);
    assert_eq!(sample(&text, "grabd_images_stored_total{way=\"core\"}")?, 1.0);
    assert_eq!(sample(&text, "grabd_renderers")?, 1.0);
    assert_eq!(sample(&text, "grabd_browsers")?, 1.0);
    // The browser itself, the zygotes, and the GPU, network and renderer processes.
    assert!(sample(&text, "grabd_browser_processes")? >= 4.0, "{text}");
    let megabytes = sample(&text, "grabd_browser_memory_bytes")? / 1e6;
    assert!((20.0..2000.0).contains(&megabytes), "{megabytes}");
    assert!(text.ends_with("# EOF\n"), "{text}");

    // The public listener does not serve metrics.
    for path in ["metrics", "pressure"] {
        let public = app.client.get(format!("{}/{path}", app.service.public_url())).send().await?;
        assert_eq!(public.status(), 404, "{path}");
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn pressure_says_how_long_a_new_grab_waits() -> Result<()> {
    let app = TestApp::start_without_browser(9, &[]).await?;
    let pressure = async || {
        let response = app.client.get(format!("http://{}/pressure", app.service.metrics())).send().await?;
        anyhow::ensure!(response.headers().get("cache-control").is_some_and(|value| value == "no-store"));
        anyhow::Ok(response.error_for_status()?.json::<Value>().await?)
    };
    let idle = json!({ "waiting": 0, "expected_wait_seconds": 2.0 });
    assert_eq!(
        pressure().await?,
        json!({ "slots": 0, "free": 0, "sync": idle, "async": idle }),
        "as if there were a slot"
    );
    let mut renderer = ScriptedRenderer::attach(app.service.core()).await?;
    for _ in 0..3 {
        let request = app.client.post(format!("{}/grabs?async=true", app.base())).bearer_auth(app.live());
        let created = request.json(&json!({ "url": app.site.url("/tiny") })).send().await?;
        assert_eq!(created.status(), 202);
    }
    // One is being rendered, which takes two seconds until more is known.
    let expected = json!({
        "slots": 1, "free": 0,
        "sync": { "waiting": 0, "expected_wait_seconds": 2.0 },
        "async": { "waiting": 2, "expected_wait_seconds": 6.0 },
    });
    // What was read before is used for a second.
    let mut ticks = tokio::time::interval(Duration::from_millis(50));
    let changed = async {
        loop {
            ticks.tick().await;
            let pressure = pressure().await?;
            if pressure["async"]["waiting"] == 2 {
                return anyhow::Ok(pressure);
            }
        }
    };
    assert_eq!(timeout(Duration::from_secs(20), changed).await.context("the queue is not shown")??, expected);
    for _ in 0..3 {
        assert!(renderer.render(&Bytes::from_static(b"an image"), &[]).await?);
    }
    app.finish().await
}
