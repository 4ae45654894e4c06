//! Slow senders of large bodies do not delay others.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use grabd_engine::accounts;
use grabd_engine::clock::Clock;
use grabd_tests::harness::TestApp;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Shorter than the time limit of a body, during which slow senders would hold all places.
const AT_ONCE: Duration = Duration::from_secs(5);

/// Sends the header of a request with a body of 100 KB, and as much of it as makes it large.
async fn send_slowly(app: &TestApp, path: &str, credential: &str) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(app.service.http()).await?;
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {credential}\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\ncontent-length: 100000\r\n\r\n{{",
        app.service.http()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(&vec![b' '; 70_000]).await?;
    Ok(stream)
}

/// Creates a grab with a document of 100 KB.
async fn create_large(app: &TestApp, key: &str) -> Result<Duration> {
    let began = Instant::now();
    let body = json!({ "html": format!("<p>{}</p>", "x".repeat(100_000)) });
    let response = app.client.post(format!("{}/grabs", app.base())).bearer_auth(key).json(&body).send().await?;
    ensure!(response.status() == 200, "{} {}", response.status(), response.text().await?);
    Ok(began.elapsed())
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_strangers_do_not_delay_a_large_create() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[]).await?;
    let unknown = "sk_test_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    for path in ["/v1/grabs", "/v1/grabs/batch", "/mcp"] {
        let mut slow = try_join_all((0..24).map(|_| send_slowly(&app, path, unknown))).await?;
        let took = create_large(&app, app.test()).await?;
        println!("{path}: {took:?} beside 24 slow strangers");
        ensure!(took < AT_ONCE, "{path}: {took:?}");
        // They are refused before their body has arrived.
        let mut response = [0; 12];
        tokio::time::timeout(AT_ONCE, slow[0].read_exact(&mut response)).await.context("no response")??;
        assert_eq!(&response, b"HTTP/1.1 401", "{path}");
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_customer_does_not_delay_the_large_creates_of_others() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[]).await?;
    let other = accounts::create_team(app.service.store(), "slow", 0, Clock::system().now()).await?;
    for path in ["/v1/grabs", "/mcp"] {
        let slow = try_join_all((0..24).map(|_| send_slowly(&app, path, other.test.expose()))).await?;
        let took = create_large(&app, app.test()).await?;
        println!("{path}: {took:?} beside a slow customer");
        ensure!(took < AT_ONCE, "{path}: {took:?}");
        drop(slow);
    }
    app.finish().await
}
