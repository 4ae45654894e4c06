//! Bodies that are too large, or that JSON parsers would interpret differently.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use grabd_tests::harness::TestApp;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio_util::task::TaskTracker;

use super::{answer, attack, connect, exchange, until_closed};

#[tokio::test(flavor = "multi_thread")]
async fn ambiguous_bodies_are_refused() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[]).await?;
    let deep = format!("{{\"url\":\"https://example.com/\",\"a\":{}{}}}", "[".repeat(10_000), "]".repeat(10_000));
    let cases: [(&str, &[u8], &str, &str); 9] = [
        ("deep", deep.as_bytes(), "bad_request", "nested deeper"),
        ("a member twice", br#"{"url":"https://example.com/","url":"https://example.org/"}"#, "bad_request", "url"),
        ("a member twice, once escaped", br#"{"url":"https://example.com/","\u0075rl":"x"}"#, "bad_request", "url"),
        ("NUL", b"{\"url\":\"https://example.com/\0\"}", "bad_request", ""),
        ("NUL, escaped", br#"{"url":"https://example.com/","selector":"a\u0000"}"#, "bad_request", "selector"),
        ("no UTF-8", b"{\"url\":\"https://example.com/\xff\"}", "bad_request", "UTF-8"),
        ("a byte order mark", b"\xef\xbb\xbf{\"url\":\"https://example.com/\"}", "bad_request", ""),
        ("a huge number", br#"{"url":"https://example.com/","width":1e400}"#, "invalid_viewport", "width"),
        ("a huge delay", br#"{"url":"https://example.com/","delay_ms":1e400}"#, "bad_request", "delay_ms"),
    ];
    attack(&app, "ambiguous bodies", 16, async {
        for (name, body, code, names) in cases {
            let request = app.client.post(format!("{}/grabs", app.base())).bearer_auth(app.test());
            let response = request.header("content-type", "application/json").body(body.to_vec()).send().await?;
            let (status, answer) = (response.status(), response.json::<Value>().await?);
            let message = answer["error"]["message"].as_str().unwrap_or_default();
            ensure!(status == 400 && answer["error"]["code"] == code && message.contains(names), "{name}: {answer}");
        }
        Ok(())
    })
    .await?;
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn oversized_body_is_refused_without_being_stored() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[]).await?;
    let head = format!(
        "POST /v1/grabs HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n",
        app.test()
    );
    let chunk = format!("4000\r\n{}\r\n", "a".repeat(0x4000));
    // Several megabytes in endless chunks, which are discarded; a length of a gigabyte; the same length with
    // `Expect: 100-continue`.
    let cases = [
        ("chunked", format!("{head}transfer-encoding: chunked\r\n\r\n{}", chunk.repeat(300))),
        ("announced", format!("{head}content-length: 1000000000\r\n\r\n{{")),
        ("announced and waiting", format!("{head}content-length: 1000000000\r\nexpect: 100-continue\r\n\r\n")),
    ];
    attack(&app, "huge bodies", 24, async {
        for (name, sent) in cases {
            let text = exchange(app.service.http(), sent.as_bytes()).await?;
            ensure!(!text.contains("100 Continue"), "{name}: the body was requested");
            let (status, body) = answer(&text)?;
            ensure!(status == 400 && body["error"]["code"] == "bad_request", "{name}: {text}");
            ensure!(text.contains("\r\nconnection: close\r\n"), "{name}: {text}");
        }
        Ok(())
    })
    .await?;
    app.finish().await
}

/// A connection that the service closes without announcing it loses the client's next request, or the response if the
/// client is still sending.
#[tokio::test(flavor = "multi_thread")]
async fn unread_body_is_discarded_or_the_end_of_the_connection_is_announced() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[]).await?;
    let to = app.service.http();
    // Without a credential, the body is not read. With one, it is read up to its limit of 4 MiB.
    let head = |further: &str| format!("POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\n{further}\r\n");
    let with_key = format!("authorization: Bearer {}\r\naccept: application/json\r\n", app.test());
    let with_key = with_key + "content-type: application/json\r\nexpect: 100-continue\r\n";
    let (small, large) = ("{}".to_owned(), " ".repeat(8 << 20));
    let chunked = format!("{:x}\r\n{}\r\n0\r\n\r\n", 5 << 20, " ".repeat(5 << 20));
    for (name, head, body, statuses) in [
        ("small", head("content-length: 2\r\n"), small, &["401", "200"][..]),
        ("large", head("content-length: 8388608\r\n"), large, &["401", "200"]),
        ("requested", head(&(with_key + "transfer-encoding: chunked\r\n")), chunked, &["100", "413", "200"]),
    ] {
        let mut stream = connect(to).await?;
        stream.write_all(head.as_bytes()).await?;
        // The body arrives after the service has handled the header.
        ensure!(app.client.get(format!("{}/healthz", app.service.public_url())).send().await?.status() == 200);
        // This client reads nothing before it has sent everything.
        stream.write_all(body.as_bytes()).await?;
        stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await?;
        let received = String::from_utf8_lossy(&until_closed(&mut stream).await?).into_owned();
        let responses = received.split("HTTP/1.1 ").skip(1);
        ensure!(responses.filter_map(|response| response.get(..3)).eq(statuses.iter().copied()), "{name}: {received}");
    }

    for (name, sent) in [
        ("never sent", head("content-length: 2\r\n")),
        ("too long", head("content-length: 8388609\r\n")),
        ("to be requested", head("content-length: 2\r\nexpect: 100-continue\r\n")),
        ("unfinished", format!("{}2\r\n{{}}\r\n", head("transfer-encoding: chunked\r\n"))),
    ] {
        let received = exchange(to, sent.as_bytes()).await?;
        ensure!(
            received.starts_with("HTTP/1.1 401 ") && received.contains("\r\nconnection: close\r\n"),
            "{name}: {received}"
        );
    }
    app.finish().await
}

/// The same over HTTP/2, where a stream that is reset loses its response.
#[tokio::test(flavor = "multi_thread")]
async fn unread_body_of_a_stream_is_discarded() -> Result<()> {
    const LENGTH: usize = 5 << 20;
    let app = TestApp::start_without_browser(0, &[]).await?;
    let (mut sender, connection) = h2::client::handshake(connect(app.service.http()).await?).await?;
    let connection = TaskTracker::new().spawn(connection);
    let request = http::Request::post(format!("{}/mcp", app.service.public_url())).body(())?;
    let (response, mut body) = sender.send_request(request, false)?;
    let mut left = LENGTH;
    while left > 0 {
        body.reserve_capacity(left);
        let capacity = std::future::poll_fn(|cx| body.poll_capacity(cx)).await;
        let part = Ord::min(left, capacity.context("the stream was reset")??);
        left -= part;
        body.send_data(vec![b' '; part].into(), left == 0)?;
    }
    ensure!(response.await?.status() == 401);
    drop((sender, body));
    connection.await??;
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn thousand_creates_with_one_key_make_one_grab() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[]).await?;
    let before = app.get("/usage", app.test()).await?.1["usage"]["grabs_last_30d"].as_u64();
    let body = json!({ "url": "https://example.com/once", "width": 320, "height": 240 });
    let creates = (0..1_000).map(|_| async {
        let request = app.client.post(format!("{}/grabs", app.base())).bearer_auth(app.test());
        let response = request.header("idempotency-key", "one").json(&body).send().await?;
        anyhow::Ok((response.status().as_u16(), response.json::<Value>().await?))
    });
    let answers: Vec<_> = stream::iter(creates).buffer_unordered(150).try_collect().await?;
    let mut seen = BTreeMap::new();
    for (status, answer) in answers {
        let what = match status {
            200 => answer["id"].to_string(),
            _ => answer["error"]["code"].to_string(),
        };
        *seen.entry((status, what)).or_insert(0) += 1;
    }
    println!("{seen:?}");
    let ids = seen.keys().filter(|(status, _)| *status == 200).count();
    assert_eq!(ids, 1, "{seen:?}");
    assert!(seen.keys().all(|(status, what)| *status == 200 || what == "\"idempotency_conflict\""), "{seen:?}");
    let after = app.get("/usage", app.test()).await?.1["usage"]["grabs_last_30d"].as_u64();
    assert_eq!(after, before.map(|before| before + 1));
    app.finish().await
}
