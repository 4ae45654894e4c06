//! Malformed HTTP/1 requests: ambiguous requests are refused.

use anyhow::{Result, ensure};
use grabd_tests::harness::TestApp;

use super::{answer, attack, exchange};

/// Ends a request header after which the service responds and closes.
const END: &str = "host: a\r\nconnection: close\r\n\r\n";

/// A request that another parser would take for a body.
const SMUGGLED: &str = "GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n";

#[tokio::test(flavor = "multi_thread")]
async fn ambiguous_requests_are_refused_with_the_error_envelope() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[]).await?;
    let to = app.service.http();
    let post = "POST /v1/grabs HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n";
    let many: String = (0..150).map(|n| format!("x-{n}: 1\r\n")).collect();
    let cases: Vec<(&str, Vec<u8>, &[u16])> = vec![
        (
            "length and chunked",
            format!("{post}content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n{SMUGGLED}").into(),
            &[401],
        ),
        (
            "chunked and length",
            format!("{post}transfer-encoding: chunked\r\ncontent-length: 4\r\n\r\n0\r\n\r\n{SMUGGLED}").into(),
            &[401],
        ),
        ("two lengths", format!("{post}content-length: 2\r\ncontent-length: 3\r\n\r\n{{}}").into(), &[400]),
        ("a length with a sign", format!("{post}content-length: +2\r\n\r\n{{}}").into(), &[400]),
        ("an unknown coding", format!("{post}transfer-encoding: gzip\r\n\r\n{{}}").into(), &[400]),
        ("a folded line", format!("GET /v1/pricing HTTP/1.1\r\nx-a: b\r\n c\r\n{END}").into(), &[400]),
        ("space before a colon", format!("GET /v1/pricing HTTP/1.1\r\nx-a : b\r\n{END}").into(), &[400]),
        ("a line without a colon", format!("GET /v1/pricing HTTP/1.1\r\nnonsense\r\n{END}").into(), &[400]),
        ("NUL in a header", format!("GET /v1/pricing HTTP/1.1\r\nx-a: \0\r\n{END}").into(), &[400]),
        ("NUL in a target", format!("GET /v1/pri\0cing HTTP/1.1\r\n{END}").into(), &[400]),
        ("a bare return", format!("GET /v1/pricing HTTP/1.1\r\nx-a: b\rc\r\n{END}").into(), &[400]),
        ("another version", format!("GET /v1/pricing HTTP/3.0\r\n{END}").into(), &[400]),
        ("no version", b"GET /v1/pricing\r\n\r\n".to_vec(), &[400]),
        ("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n".to_vec(), &[400]),
        ("a very long target", format!("GET /{} HTTP/1.1\r\n{END}", "a".repeat(20_000)).into(), &[400]),
        (
            "a very long header",
            format!("GET /v1/pricing HTTP/1.1\r\nx-a: {}\r\n{END}", "a".repeat(20_000)).into(),
            &[400],
        ),
        ("very many headers", format!("GET /v1/pricing HTTP/1.1\r\n{many}{END}").into(), &[400]),
        ("an unknown method", format!("BREW /v1/grabs HTTP/1.1\r\n{END}").into(), &[405]),
        ("a tunnel", format!("CONNECT a:443 HTTP/1.1\r\n{END}").into(), &[404, 405]),
        ("the whole server", format!("OPTIONS * HTTP/1.1\r\n{END}").into(), &[404]),
        ("a path that climbs", format!("GET /v1/../../etc/passwd HTTP/1.1\r\n{END}").into(), &[404]),
    ];
    attack(&app, "malformed requests", 16, async {
        for (name, sent, expected) in cases {
            let text = exchange(to, &sent).await?;
            ensure!(text.matches("HTTP/1.").count() == 1, "{name}: {text}");
            let (status, body) = answer(&text)?;
            println!("{name}: {status} {body}");
            ensure!(expected.contains(&status), "{name}: {status} {body}");
            ensure!(body["error"]["code"].is_string() && body["error"]["message"].is_string(), "{name}: {body}");
        }
        Ok(())
    })
    .await?;
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn unusual_but_valid_requests_are_served() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[]).await?;
    let to = app.service.http();
    let cases: [(&str, Vec<u8>); 7] = [
        ("an absolute target", format!("GET http://other.example/v1/pricing HTTP/1.1\r\n{END}").into()),
        ("bare line feeds", b"GET /v1/pricing HTTP/1.1\nhost: a\nconnection: close\n\n".to_vec()),
        ("a websocket", format!("GET /v1/pricing HTTP/1.1\r\nupgrade: websocket\r\n{END}").into()),
        ("h2c", b"GET /v1/pricing HTTP/1.1\r\nhost: a\r\nconnection: upgrade, http2-settings, close\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__\r\n\r\n".to_vec()),
        ("latin-1 in a header", [b"GET /v1/pricing HTTP/1.1\r\nx-a: \xe9\r\n", END.as_bytes()].concat()),
        ("no text in a query", format!("GET /v1/pricing?x=%ff%00&%fe HTTP/1.1\r\n{END}").into()),
        ("an old version", format!("GET /v1/pricing HTTP/1.0\r\n{END}").into()),
    ];
    for (name, sent) in cases {
        let text = exchange(to, &sent).await?;
        ensure!(text.starts_with("HTTP/1.1 200 ") || text.starts_with("HTTP/1.0 200 "), "{name}: {text:.200}");
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn pipelined_requests_are_answered_in_order() -> Result<()> {
    const REQUESTS: usize = 2_000;
    let app = TestApp::start_without_browser(0, &[]).await?;
    let mut sent = "GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n".repeat(REQUESTS - 1);
    sent.push_str(&format!("GET /healthz HTTP/1.1\r\n{END}"));
    let text = attack(&app, "pipelined requests", 16, async {
        let stream = super::connect(app.service.http()).await?;
        let (mut from, mut to) = stream.into_split();
        let mut text = String::new();
        let write = tokio::io::AsyncWriteExt::write_all(&mut to, sent.as_bytes());
        let read = tokio::io::AsyncReadExt::read_to_string(&mut from, &mut text);
        let (written, read) = tokio::join!(write, read);
        written?;
        read?;
        Ok(text)
    })
    .await?;
    assert_eq!(text.matches("HTTP/1.1 200 OK").count(), REQUESTS);
    app.finish().await
}
