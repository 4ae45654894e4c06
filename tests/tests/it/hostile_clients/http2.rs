//! Abuse of HTTP/2, on both listeners.

use std::net::SocketAddr;

use anyhow::{Result, ensure};
use grabd::serve::Rendering;
use grabd_tests::harness::TestApp;
use tokio::io::AsyncWriteExt;

use super::frames::{
    CONTINUATION, END_HEADERS, END_STREAM, HEADERS, PING, RST_STREAM, SETTINGS, block, count, frame, goaway, open,
    parse,
};
use super::{attack, until_closed};

/// Sends frames and returns the frames that the service sends before it closes the connection.
async fn exchange_frames(to: SocketAddr, sent: &[u8]) -> Result<Vec<(u8, Vec<u8>)>> {
    let stream = open(to, &[]).await?;
    let (from, mut writer) = stream.into_split();
    let write = async {
        // The service may close the connection before everything is sent.
        let _ = writer.write_all(sent).await;
        writer
    };
    let mut from = from;
    let mut received = Vec::new();
    let read = tokio::io::AsyncReadExt::read_to_end(&mut from, &mut received);
    let (_writer, read) = tokio::join!(write, tokio::time::timeout(super::WAIT_LIMIT, read));
    let _ = read?;
    Ok(parse(&received))
}

#[tokio::test(flavor = "multi_thread")]
async fn protocol_abuse_closes_the_connection() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[]).await?;
    let request = block("GET", "/v1/pricing", &[]);
    let open_request = |stream: u32, flags: u8| frame(HEADERS, flags, stream, &request);
    let rapid: Vec<u8> = (0..5_000)
        .flat_map(|n| {
            [open_request(2 * n + 1, END_HEADERS | END_STREAM), frame(RST_STREAM, 0, 2 * n + 1, &[0, 0, 0, 8])].concat()
        })
        .collect();
    let mut continued = open_request(1, 0);
    let more: Vec<u8> = (0..50).flat_map(|_| [&[0, 1, b'x', 100][..], &[b'a'; 100]].concat()).collect();
    continued.extend((0..1_000).flat_map(|_| frame(CONTINUATION, 0, 1, &more)));
    let mut empty = open_request(1, 0);
    empty.extend((0..10_000).flat_map(|_| frame(CONTINUATION, 0, 1, &[])));
    let cases: [(&str, Vec<u8>); 6] = [
        ("rapid reset", rapid),
        ("a header that never ends", continued),
        ("a header that never ends and is empty", empty),
        ("a frame beyond the size", frame(HEADERS, END_HEADERS, 1, &vec![0; 20_000])),
        ("a ping of a stream", frame(PING, 0, 1, &[0; 8])),
        ("settings of nonsense", frame(SETTINGS, 0, 0, &[0, 4, 0xff, 0xff, 0xff, 0xff])),
    ];
    for (listener, to) in [("HTTP", app.service.http()), ("gRPC", app.service.grpc())] {
        for (name, sent) in &cases {
            let name = format!("{listener}: {name}");
            let received = attack(&app, &name, 32, exchange_frames(to, sent)).await?;
            println!("{name}: GOAWAY {:?}, {} frames", goaway(&received), received.len());
            ensure!(goaway(&received).is_some_and(|code| code != 0), "{name}: {received:?}");
        }
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_streams_are_limited_to_a_hundred() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[]).await?;
    // The bodies are never sent, so that each stream would stay open.
    let request = block("POST", "/v1/grabs", &[("content-type", "application/json")]);
    let sent: Vec<u8> = (0..10_000).flat_map(|n| frame(HEADERS, END_HEADERS, 2 * n + 1, &request)).collect();
    let received = attack(&app, "10,000 streams", 32, exchange_frames(app.service.http(), &sent)).await?;
    println!("10,000 streams: {} resets, GOAWAY {:?}", count(&received, RST_STREAM), goaway(&received));
    // Refusing streams costs work too, so the service closes the connection after a while.
    ensure!(count(&received, RST_STREAM) == 1_024, "{}", count(&received, RST_STREAM));
    ensure!(goaway(&received) == Some(11), "{:?}", goaway(&received));
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn flood_without_reading_responses_is_disconnected() -> Result<()> {
    let app = TestApp::start_with(0, &[], super::slow::SHORT, Rendering::None).await?;
    for (listener, to) in [("HTTP", app.service.http()), ("gRPC", app.service.grpc())] {
        for (name, one) in [("pings", frame(PING, 0, 0, &[7; 8])), ("settings", frame(SETTINGS, 0, 0, &[]))] {
            let name = format!("{listener}: a flood of {name}");
            let many = one.repeat(4_000);
            attack(&app, &name, 48, async {
                let mut stream = open(to, &[]).await?;
                // Ends when the service's send timeout expires.
                let flood = async { while stream.write_all(&many).await.is_ok() {} };
                tokio::time::timeout(super::WAIT_LIMIT, flood).await?;
                until_closed(&mut stream).await.map(drop)
            })
            .await?;
        }
    }
    app.finish().await
}
