//! More connections than anybody needs.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use grabd::serve::Patience;
use grabd_tests::harness::Harness;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{answer, attack, connect, exchange, until_closed};

/// Asks for the health, and waits for the whole answer.
async fn is_served(stream: &mut TcpStream) -> Result<bool> {
    if stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n").await.is_err() {
        return Ok(false);
    }
    let mut heard = Vec::new();
    loop {
        let mut part = [0; 1024];
        match tokio::time::timeout(super::PATIENCE, stream.read(&mut part)).await? {
            Ok(0) | Err(_) => return Ok(false),
            Ok(length) => heard.extend_from_slice(&part[..length]),
        }
        if heard.ends_with(b"ok\n") {
            return Ok(true);
        }
    }
}

/// Waits until a connection of the attacker's is served again.
async fn is_served_again(harness: &Harness) -> Result<TcpStream> {
    let again = async {
        loop {
            let mut stream = connect(harness.service.http()).await?;
            if is_served(&mut stream).await? {
                return anyhow::Ok(stream);
            }
        }
    };
    tokio::time::timeout(super::PATIENCE, again).await.context("turned away for ever")?
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_has_its_connections() -> Result<()> {
    let harness = Harness::start(0, &[("grpc.connections_per_address", "50")]).await?;
    let (http, grpc) = (harness.service.http(), harness.service.grpc());
    attack(&harness, "HTTP: 400 connections", 20, async {
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
        is_served_again(&harness).await.map(drop)
    })
    .await?;
    attack(&harness, "gRPC: 51 connections", 20, async {
        let mut held = Vec::new();
        for _ in 0..50 {
            held.push(connect(grpc).await?);
        }
        ensure!(until_closed(&mut connect(grpc).await?).await?.is_empty());
        Ok(())
    })
    .await?;
    harness.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_has_its_requests_under_way() -> Result<()> {
    let harness = Harness::start(0, &[("http.requests_per_address", "3")]).await?;
    let to = harness.service.http();
    let begun = format!(
        "POST /v1/grabs HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
         content-length: 2\r\nexpect: 100-continue\r\n\r\n",
        harness.test()
    );
    let mut held = Vec::new();
    for _ in 0..3 {
        let mut stream = connect(to).await?;
        stream.write_all(begun.as_bytes()).await?;
        // Said when the body is wanted, so the request is under way.
        let mut go_on = [0; 25];
        stream.read_exact(&mut go_on).await?;
        ensure!(&go_on == b"HTTP/1.1 100 Continue\r\n\r\n", "{go_on:?}");
        held.push(stream);
    }
    let text = exchange(to, b"GET /v1/pricing HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await?;
    let (status, body) = answer(&text)?;
    ensure!(status == 429 && body["error"]["code"] == "rate_limit_exceeded", "{text}");
    ensure!(text.contains("\r\nretry-after: 1\r\n"), "{text}");
    super::good_client(&harness).await?;
    held[0].write_all(b"{}").await?;
    let mut first = [0; 12];
    held[0].read_exact(&mut first).await?;
    ensure!(&first == b"HTTP/1.1 400", "{first:?}");
    drop(held);
    is_served_again(&harness).await?;
    harness.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_is_not_one_client() -> Result<()> {
    let settings = [("http.connections_per_address", "5"), ("http.trusted_proxies", "127.0.0.9/32")];
    let harness = Harness::start(0, &settings).await?;
    let mut held = Vec::new();
    for number in 0..20 {
        let mut stream = connect(harness.service.http()).await?;
        ensure!(is_served(&mut stream).await?, "connection {number}");
        held.push(stream);
    }
    harness.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_make_room_when_it_is_short() -> Result<()> {
    // Connections are looked at often, and may be idle for longer than this test lasts.
    let patience = Patience { idle: Duration::from_secs(600), ..super::slow::SHORT };
    let harness = Harness::start_with(0, &[("limits.connections", "20")], patience).await?;
    let mut held = Vec::new();
    for _ in 0..60 {
        let mut stream = connect(harness.service.http()).await?;
        ensure!(is_served(&mut stream).await?);
        held.push(stream);
    }
    super::good_client(&harness).await?;
    harness.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn who_follows_and_vanishes_leaves_nothing_behind() -> Result<()> {
    let settings = [("http.connections_per_address", "5"), ("browser.slots", "1")];
    let harness = Harness::start(2, &settings).await?;
    let body = json!({ "url": harness.site.url("/slow/5000") });
    let mut ids = Vec::new();
    for _ in 0..2 {
        let create = harness.client.post(format!("{}/grabs?async=true", harness.base())).bearer_auth(harness.live());
        let grab: Value = create.json(&body).send().await?.error_for_status()?.json().await?;
        ids.push(grab["id"].as_str().context("an id")?.to_owned());
    }
    let id = &ids[1];
    let key = harness.live();
    let ways = [
        format!("GET /v1/grabs/{id}/events HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {key}\r\n\r\n"),
        format!("GET /v1/grabs/{id} HTTP/1.1\r\nhost: a\r\nprefer: wait=25\r\nauthorization: Bearer {key}\r\n\r\n"),
    ];
    attack(&harness, "watch and vanish", 24, async {
        for way in ways.iter().cycle().take(20) {
            // Whoever is served holds one of five places, so twenty times five need all of them back each time.
            let mut held = Vec::new();
            while held.len() < 5 {
                let mut stream = is_served_again(&harness).await?;
                stream.write_all(way.as_bytes()).await?;
                held.push(stream);
            }
        }
        Ok(())
    })
    .await?;
    let wait =
        harness.client.get(format!("{}/grabs/{id}", harness.base())).bearer_auth(key).header("prefer", "wait=25");
    assert_eq!(wait.send().await?.json::<Value>().await?["status"], "done");
    harness.finish().await
}
