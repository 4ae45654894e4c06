//! Slow clients. All tests but one use shorter timeouts than the default.

use std::time::Duration;

use anyhow::{Result, ensure};
use grabd::serve::{Rendering, Timeouts};
use grabd_tests::harness::TestApp;
use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::frames::{DATA, END_HEADERS, END_STREAM, HEADERS, PREFACE, block, count, frame, goaway, open, parse};
use super::{answer, attack, connect, until_closed};

/// Enough for the good client, and short enough for a test.
pub(super) const SHORT: Timeouts = Timeouts {
    header: Duration::from_millis(500),
    idle: Duration::from_millis(1500),
    answer: Duration::from_millis(1000),
};

/// Sends a byte per interval until the connection is closed. Returns the time that took, and what was received.
async fn trickle(to: std::net::SocketAddr, first: &[u8], byte: &[u8]) -> Result<(Duration, Vec<u8>)> {
    let mut stream = connect(to).await?;
    let start = Instant::now();
    stream.write_all(first).await?;
    let (mut from, mut writer) = stream.into_split();
    let mut received = Vec::new();
    let mut pace = interval(Duration::from_millis(50));
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let talk = async {
        loop {
            pace.tick().await;
            if !byte.is_empty() && writer.write_all(byte).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    };
    let listen = tokio::io::AsyncReadExt::read_to_end(&mut from, &mut received);
    tokio::select! {
        () = talk => {}
        read = tokio::time::timeout(super::WAIT_LIMIT, listen) => { let _ = read?; }
    }
    Ok((start.elapsed(), received))
}

#[tokio::test(flavor = "multi_thread")]
async fn incomplete_header_closes_the_connection() -> Result<()> {
    let app = TestApp::start_with(0, &[], SHORT, Rendering::None).await?;
    let (http, grpc) = (app.service.http(), app.service.grpc());
    let idle = b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n";
    let get = frame(HEADERS, 0, 1, &block("GET", "/v1/pricing", &[]));
    let unfinished = [PREFACE, &frame(4, 0, 0, &[]), &get].concat();
    let cases: [(&str, _, &[u8], &[u8], Duration); 9] = [
        ("HTTP: silence", http, b"", b"", SHORT.header),
        ("HTTP: a trickling header", http, b"GET / HTTP/1.1\r\nx-a: ", b"a", SHORT.header),
        ("HTTP: a trickling preface", http, b"PRI", b"", SHORT.header),
        ("HTTP: an idle connection", http, idle, b"", SHORT.idle),
        ("HTTP: a second header that trickles", http, idle, b"G", SHORT.header),
        ("HTTP/2: an idle connection", http, &unfinished[..PREFACE.len() + 9], b"", SHORT.idle),
        ("HTTP/2: a header that does not end", http, &unfinished, b"", SHORT.idle),
        ("gRPC: silence", grpc, b"", b"", SHORT.header),
        ("gRPC: an idle connection", grpc, &unfinished[..PREFACE.len() + 9], b"", SHORT.idle),
    ];
    for (name, to, first, byte, least) in cases {
        let (took, received) = attack(&app, name, 16, trickle(to, first, byte)).await?;
        println!("{name}: closed after {took:?}, {} bytes received", received.len());
        // A peer that ignores GOAWAY is disconnected after the response timeouts.
        let most = least + SHORT.header + SHORT.answer + Duration::from_secs(5);
        // The service starts its clock before the client does.
        ensure!((least.mul_f64(0.9)..most).contains(&took), "{name}: {took:?}");
        if name.contains("HTTP/2: an idle") {
            ensure!(goaway(&parse(&received)) == Some(0), "{name}: no GOAWAY");
        }
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn incomplete_body_is_refused_after_ten_seconds() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[]).await?;
    let to = app.service.http();
    let head = format!(
        "POST /v1/grabs HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
         content-length: 60000\r\n\r\n",
        app.test()
    );
    attack(&app, "slow bodies", 24, async {
        let (silent, trickling) = tokio::join!(trickle(to, head.as_bytes(), b""), trickle(to, head.as_bytes(), b" "));
        for (took, received) in [silent?, trickling?] {
            let (status, body) = answer(&String::from_utf8_lossy(&received))?;
            ensure!(status == 400 && body["error"]["code"] == "bad_request", "{status} {body}");
            ensure!((10..13).contains(&took.as_secs()), "{took:?}");
        }
        Ok(())
    })
    .await?;
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn client_that_does_not_read_is_disconnected() -> Result<()> {
    let app = TestApp::start_with(0, &[], SHORT, Rendering::None).await?;
    let to = app.service.http();

    // The socket buffers are full of responses that are never read.
    attack(&app, "HTTP/1: a client that never reads", 48, async {
        let mut stream = connect(to).await?;
        let many = "GET /v1/openapi.json HTTP/1.1\r\nhost: a\r\n\r\n".repeat(100);
        let flood = async { while stream.write_all(many.as_bytes()).await.is_ok() {} };
        tokio::time::timeout(super::WAIT_LIMIT, flood).await?;
        Ok(())
    })
    .await?;

    // The connection is free, but the flow-control windows of the streams are closed: at zero, or after the first byte.
    let request = block("GET", "/v1/openapi.json", &[]);
    let sent: Vec<u8> = (0..90).flat_map(|n| frame(HEADERS, END_HEADERS | END_STREAM, 2 * n + 1, &request)).collect();
    for window in [0, 1] {
        let name = format!("HTTP/2: a window of {window}");
        let received = attack(&app, &name, 48, async {
            let mut stream = open(to, &[0, 4, 0, 0, 0, window]).await?;
            stream.write_all(&sent).await?;
            until_closed(&mut stream).await
        })
        .await?;
        let frames = parse(&received);
        ensure!(count(&frames, HEADERS) == 90 && count(&frames, DATA) == 90 * usize::from(window), "{name}");
        ensure!(goaway(&frames) == Some(0), "{name}: the connection was closed without GOAWAY");
    }
    app.finish().await
}
