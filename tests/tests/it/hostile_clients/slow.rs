//! Clients that take their time. All but one of these use a listener with less patience than usual.

use std::time::Duration;

use anyhow::{Result, ensure};
use grabd::serve::Patience;
use grabd_tests::harness::Harness;
use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::frames::{DATA, END_HEADERS, END_STREAM, HEADERS, PREFACE, block, count, frame, goaway, open, parse};
use super::{answer, attack, connect, until_closed};

/// Enough for the good client, and little enough for a test.
pub(super) const SHORT: Patience = Patience {
    header: Duration::from_millis(500),
    idle: Duration::from_millis(1500),
    answer: Duration::from_millis(1000),
};

/// Says a byte now and then until the other side has enough; how long that took.
async fn trickle(to: std::net::SocketAddr, first: &[u8], byte: &[u8]) -> Result<(Duration, Vec<u8>)> {
    let mut stream = connect(to).await?;
    let start = Instant::now();
    stream.write_all(first).await?;
    let (mut from, mut writer) = stream.into_split();
    let mut heard = Vec::new();
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
    let listen = tokio::io::AsyncReadExt::read_to_end(&mut from, &mut heard);
    tokio::select! {
        () = talk => {}
        read = tokio::time::timeout(super::PATIENCE, listen) => { let _ = read?; }
    }
    Ok((start.elapsed(), heard))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_header_that_does_not_come_ends_the_connection() -> Result<()> {
    let harness = Harness::start_with(0, &[], SHORT).await?;
    let (http, grpc) = (harness.service.http(), harness.service.grpc());
    let idle = b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n";
    let get = frame(HEADERS, 0, 1, &block("GET", "/v1/pricing", &[]));
    let begun = [PREFACE, &frame(4, 0, 0, &[]), &get].concat();
    let cases: [(&str, _, &[u8], &[u8], Duration); 9] = [
        ("HTTP: silence", http, b"", b"", SHORT.header),
        ("HTTP: a trickling header", http, b"GET / HTTP/1.1\r\nx-a: ", b"a", SHORT.header),
        ("HTTP: a trickling preface", http, b"PRI", b"", SHORT.header),
        ("HTTP: an idle connection", http, idle, b"", SHORT.idle),
        ("HTTP: a second header that trickles", http, idle, b"G", SHORT.header),
        ("HTTP/2: an idle connection", http, &begun[..PREFACE.len() + 9], b"", SHORT.idle),
        ("HTTP/2: a header that does not end", http, &begun, b"", SHORT.idle),
        ("gRPC: silence", grpc, b"", b"", SHORT.header),
        ("gRPC: an idle connection", grpc, &begun[..PREFACE.len() + 9], b"", SHORT.idle),
    ];
    for (name, to, first, byte, least) in cases {
        let (took, heard) = attack(&harness, name, 16, trickle(to, first, byte)).await?;
        println!("{name}: closed after {took:?}, {} bytes said", heard.len());
        // A peer that is told to go and stays is left after the patience for answers.
        let most = least + SHORT.header + SHORT.answer + Duration::from_secs(5);
        // The service's watch starts before the client's.
        ensure!((least.mul_f64(0.9)..most).contains(&took), "{name}: {took:?}");
        if name.contains("HTTP/2: an idle") {
            ensure!(goaway(&parse(&heard)) == Some(0), "{name}: not told");
        }
    }
    harness.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_does_not_come_is_answered_after_ten_seconds() -> Result<()> {
    let harness = Harness::start(0, &[]).await?;
    let to = harness.service.http();
    let head = format!(
        "POST /v1/grabs HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
         content-length: 60000\r\n\r\n",
        harness.test()
    );
    attack(&harness, "slow bodies", 24, async {
        let (silent, trickling) = tokio::join!(trickle(to, head.as_bytes(), b""), trickle(to, head.as_bytes(), b" "));
        for (took, heard) in [silent?, trickling?] {
            let (status, body) = answer(&String::from_utf8_lossy(&heard))?;
            ensure!(status == 400 && body["error"]["code"] == "bad_request", "{status} {body}");
            ensure!((10..20).contains(&took.as_secs()), "{took:?}");
        }
        Ok(())
    })
    .await?;
    harness.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_take_the_answer_is_left() -> Result<()> {
    let harness = Harness::start_with(0, &[], SHORT).await?;
    let to = harness.service.http();

    // The line is full of answers that nobody reads.
    attack(&harness, "HTTP/1: a client that never reads", 48, async {
        let mut stream = connect(to).await?;
        let many = "GET /v1/openapi.json HTTP/1.1\r\nhost: a\r\n\r\n".repeat(100);
        let flood = async { while stream.write_all(many.as_bytes()).await.is_ok() {} };
        tokio::time::timeout(super::PATIENCE, flood).await?;
        Ok(())
    })
    .await?;

    // The line is free, but the streams' windows are shut: at nothing, and after the first byte.
    let request = block("GET", "/v1/openapi.json", &[]);
    let sent: Vec<u8> = (0..90).flat_map(|n| frame(HEADERS, END_HEADERS | END_STREAM, 2 * n + 1, &request)).collect();
    for window in [0, 1] {
        let name = format!("HTTP/2: a window of {window}");
        let heard = attack(&harness, &name, 48, async {
            let mut stream = open(to, &[0, 4, 0, 0, 0, window]).await?;
            stream.write_all(&sent).await?;
            until_closed(&mut stream).await
        })
        .await?;
        let frames = parse(&heard);
        ensure!(count(&frames, HEADERS) == 90 && count(&frames, DATA) == 90 * usize::from(window), "{name}");
        ensure!(goaway(&frames) == Some(0), "{name}: others on the connection are cut off without a word");
    }
    harness.finish().await
}
