//! Abuse of HTTP/2, which both listeners speak.

use std::net::SocketAddr;

use anyhow::{Result, ensure};
use grabd_tests::harness::Harness;
use tokio::io::AsyncWriteExt;

use super::frames::{
    CONTINUATION, END_HEADERS, END_STREAM, HEADERS, PING, RST_STREAM, SETTINGS, block, count, frame, goaway, open,
    parse,
};
use super::{attack, until_closed};

/// What the service says to these frames before it closes.
async fn said(to: SocketAddr, sent: &[u8]) -> Result<Vec<(u8, Vec<u8>)>> {
    let stream = open(to, &[]).await?;
    let (from, mut writer) = stream.into_split();
    let write = async {
        // The service may have heard enough before the end.
        let _ = writer.write_all(sent).await;
        writer
    };
    let mut from = from;
    let mut heard = Vec::new();
    let read = tokio::io::AsyncReadExt::read_to_end(&mut from, &mut heard);
    let (_writer, read) = tokio::join!(write, tokio::time::timeout(super::PATIENCE, read));
    let _ = read?;
    Ok(parse(&heard))
}

#[tokio::test(flavor = "multi_thread")]
async fn abuse_of_the_protocol_ends_the_connection() -> Result<()> {
    let harness = Harness::start(0, &[]).await?;
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
        ("a header that never ends and says nothing", empty),
        ("a frame beyond the size", frame(HEADERS, END_HEADERS, 1, &vec![0; 20_000])),
        ("a ping of a stream", frame(PING, 0, 1, &[0; 8])),
        ("settings of nonsense", frame(SETTINGS, 0, 0, &[0, 4, 0xff, 0xff, 0xff, 0xff])),
    ];
    for (listener, to) in [("HTTP", harness.service.http()), ("gRPC", harness.service.grpc())] {
        for (name, sent) in &cases {
            let name = format!("{listener}: {name}");
            let heard = attack(&harness, &name, 32, said(to, sent)).await?;
            println!("{name}: GOAWAY {:?}, {} frames", goaway(&heard), heard.len());
            ensure!(goaway(&heard).is_some_and(|code| code != 0), "{name}: {heard:?}");
        }
    }
    harness.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_requests_at_once_are_a_hundred() -> Result<()> {
    let harness = Harness::start(0, &[]).await?;
    // Bodies that do not come, so that each would stay.
    let request = block("POST", "/v1/grabs", &[("content-type", "application/json")]);
    let sent: Vec<u8> = (0..10_000).flat_map(|n| frame(HEADERS, END_HEADERS, 2 * n + 1, &request)).collect();
    let heard = attack(&harness, "10,000 streams", 32, said(harness.service.http(), &sent)).await?;
    println!("10,000 streams: {} resets, GOAWAY {:?}", count(&heard, RST_STREAM), goaway(&heard));
    // Refusing them one by one is work too, and ends after a while.
    ensure!(count(&heard, RST_STREAM) == 1_024, "{}", count(&heard, RST_STREAM));
    ensure!(goaway(&heard) == Some(11), "{:?}", goaway(&heard));
    harness.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_whose_answers_nobody_reads_stops() -> Result<()> {
    let harness = Harness::start_with(0, &[], super::slow::SHORT).await?;
    for (listener, to) in [("HTTP", harness.service.http()), ("gRPC", harness.service.grpc())] {
        for (name, one) in [("pings", frame(PING, 0, 0, &[7; 8])), ("settings", frame(SETTINGS, 0, 0, &[]))] {
            let name = format!("{listener}: a flood of {name}");
            let many = one.repeat(4_000);
            attack(&harness, &name, 48, async {
                let mut stream = open(to, &[]).await?;
                // Ends when the service, whose line is full, has waited long enough.
                let flood = async { while stream.write_all(&many).await.is_ok() {} };
                tokio::time::timeout(super::PATIENCE, flood).await?;
                until_closed(&mut stream).await.map(drop)
            })
            .await?;
        }
    }
    harness.finish().await
}
