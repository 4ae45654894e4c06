//! Clients that open very many connections.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use grabd::serve::{Rendering, Timeouts};
use grabd_tests::harness::TestApp;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{answer, attack, connect, exchange, until_closed};

/// Requests the health endpoint. Returns whether the complete response arrived.
async fn is_served(stream: &mut TcpStream) -> Result<bool> {
    if stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n").await.is_err() {
        return Ok(false);
    }
    let mut received = Vec::new();
    loop {
        let mut part = [0; 1024];
        match tokio::time::timeout(super::WAIT_LIMIT, stream.read(&mut part)).await? {
            Ok(0) | Err(_) => return Ok(false),
            Ok(length) => received.extend_from_slice(&part[..length]),
        }
        if received.ends_with(b"ok\n") {
            return Ok(true);
        }
    }
}

/// Waits until a connection of the attacker is served.
async fn is_served_again(app: &TestApp) -> Result<TcpStream> {
    let again = async {
        loop {
            let mut stream = connect(app.service.http()).await?;
            if is_served(&mut stream).await? {
                return anyhow::Ok(stream);
            }
        }
    };
    tokio::time::timeout(super::WAIT_LIMIT, again).await.context("the connections were not released")?
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_per_address_are_limited() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[("grpc.connections_per_address", "50")]).await?;
    let (http, grpc) = (app.service.http(), app.service.grpc());
    attack(&app, "HTTP: 400 connections", 20, async {
        let mut held = Vec::new();
        for number in 0..200 {
            let mut stream = connect(http).await?;
            ensure!(is_served(&mut stream).await?, "connection {number}");
            held.push(stream);
        }
        for _ in 0..200 {
            let text = String::from_utf8(until_closed(&mut connect(http).await?).await?)?;
            let (status, body) = answer(&text)?;
            ensure!(status == 429 && body["error"]["code"] == "rate_limit_exceeded", "{text}");
        }
        drop(held);
        is_served_again(&app).await.map(drop)
    })
    .await?;
    attack(&app, "gRPC: 51 connections", 20, async {
        let mut held = Vec::new();
        for _ in 0..50 {
            held.push(connect(grpc).await?);
        }
        ensure!(until_closed(&mut connect(grpc).await?).await?.is_empty());
        Ok(())
    })
    .await?;
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_requests_per_address_are_limited() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[("http.requests_per_address", "3")]).await?;
    let to = app.service.http();
    let request = format!(
        "POST /v1/grabs HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
         content-length: 2\r\nexpect: 100-continue\r\n\r\n",
        app.test()
    );
    let mut held = Vec::new();
    for _ in 0..3 {
        let mut stream = connect(to).await?;
        stream.write_all(request.as_bytes()).await?;
        // The service sends 100 Continue when it wants the body, so the request is in progress.
        let mut go_on = [0; 25];
        stream.read_exact(&mut go_on).await?;
        ensure!(&go_on == b"HTTP/1.1 100 Continue\r\n\r\n", "{go_on:?}");
        held.push(stream);
    }
    let text = exchange(to, b"GET /v1/pricing HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await?;
    let (status, body) = answer(&text)?;
    ensure!(status == 429 && body["error"]["code"] == "rate_limit_exceeded", "{text}");
    ensure!(text.contains("\r\nretry-after: 1\r\n"), "{text}");
    super::check_good_client(&app).await?;
    held[0].write_all(b"{}").await?;
    let mut first = [0; 12];
    held[0].read_exact(&mut first).await?;
    ensure!(&first == b"HTTP/1.1 400", "{first:?}");
    drop(held);
    is_served_again(&app).await?;
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn trusted_proxy_is_not_limited_as_one_client() -> Result<()> {
    let settings = [("http.connections_per_address", "5"), ("http.trusted_proxies", "127.0.0.9/32")];
    let app = TestApp::start_without_browser(0, &settings).await?;
    let mut held = Vec::new();
    for number in 0..20 {
        let mut stream = connect(app.service.http()).await?;
        ensure!(is_served(&mut stream).await?, "connection {number}");
        held.push(stream);
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_are_closed_when_the_limit_is_reached() -> Result<()> {
    // Connections are checked often, and may be idle for longer than this test takes.
    let timeouts = Timeouts { idle: Duration::from_secs(600), ..super::slow::SHORT };
    let app = TestApp::start_with(0, &[("limits.connections", "20")], timeouts, Rendering::None).await?;
    let mut held = Vec::new();
    for _ in 0..60 {
        let mut stream = connect(app.service.http()).await?;
        ensure!(is_served(&mut stream).await?);
        held.push(stream);
    }
    super::check_good_client(&app).await?;
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn disconnected_watchers_release_their_connections() -> Result<()> {
    let settings = [("http.connections_per_address", "5"), ("browser.slots", "1")];
    let app = TestApp::start(2, &settings).await?;
    let body = json!({ "url": app.site.url("/slow/5000") });
    let mut ids = Vec::new();
    for _ in 0..2 {
        let create = app.client.post(format!("{}/grabs?async=true", app.base())).bearer_auth(app.live());
        let grab: Value = create.json(&body).send().await?.error_for_status()?.json().await?;
        ids.push(grab["id"].as_str().context("an id")?.to_owned());
    }
    let id = &ids[1];
    let key = app.live();
    let requests = [
        format!("GET /v1/grabs/{id}/events HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {key}\r\n\r\n"),
        format!("GET /v1/grabs/{id} HTTP/1.1\r\nhost: a\r\nprefer: wait=25\r\nauthorization: Bearer {key}\r\n\r\n"),
    ];
    attack(&app, "watch and vanish", 24, async {
        for request in requests.iter().cycle().take(20) {
            // Each connection uses one of five places, so twenty rounds need all of them released each time.
            let mut held = Vec::new();
            while held.len() < 5 {
                let mut stream = is_served_again(&app).await?;
                stream.write_all(request.as_bytes()).await?;
                held.push(stream);
            }
        }
        Ok(())
    })
    .await?;
    let wait = app.client.get(format!("{}/grabs/{id}", app.base())).bearer_auth(key).header("prefer", "wait=25");
    assert_eq!(wait.send().await?.json::<Value>().await?["status"], "done");
    app.finish().await
}
