//! Bodies that are too much, or no JSON that two readers would read alike.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use grabd_tests::harness::Harness;
use serde_json::{Value, json};

use super::{answer, attack, exchange};

#[tokio::test(flavor = "multi_thread")]
async fn a_body_is_read_in_one_way_or_refused() -> Result<()> {
    let harness = Harness::start(0, &[]).await?;
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
    attack(&harness, "bodies of two readings", 16, async {
        for (name, body, code, names) in cases {
            let request = harness.client.post(format!("{}/grabs", harness.base())).bearer_auth(harness.test());
            let response = request.header("content-type", "application/json").body(body.to_vec()).send().await?;
            let (status, answer) = (response.status(), response.json::<Value>().await?);
            let message = answer["error"]["message"].as_str().unwrap_or_default();
            ensure!(status == 400 && answer["error"]["code"] == code && message.contains(names), "{name}: {answer}");
        }
        Ok(())
    })
    .await?;
    harness.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_beyond_the_limit_is_neither_kept_nor_awaited() -> Result<()> {
    let harness = Harness::start(0, &[]).await?;
    let head = format!(
        "POST /v1/grabs HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n",
        harness.test()
    );
    let chunk = format!("4000\r\n{}\r\n", "a".repeat(0x4000));
    // Some megabytes in chunks that never end; a length that promises a gigabyte; the same to one who waits to be asked.
    let cases = [
        ("chunked", format!("{head}transfer-encoding: chunked\r\n\r\n{}", chunk.repeat(300))),
        ("announced", format!("{head}content-length: 1000000000\r\n\r\n{{")),
        ("announced and waiting", format!("{head}content-length: 1000000000\r\nexpect: 100-continue\r\n\r\n")),
    ];
    attack(&harness, "huge bodies", 24, async {
        for (name, sent) in cases {
            let text = exchange(harness.service.http(), sent.as_bytes()).await?;
            ensure!(!text.contains("100 Continue"), "{name}: asked for it");
            // Whose bytes are still under way may find the connection reset, and read nothing.
            if name != "chunked" || !text.is_empty() {
                let (status, body) = answer(&text)?;
                ensure!(status == 400 && body["error"]["code"] == "bad_request", "{name}: {text}");
            }
        }
        Ok(())
    })
    .await?;
    harness.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_creates_with_one_key_are_one_grab() -> Result<()> {
    let harness = Harness::start(0, &[]).await?;
    let before = harness.get("/usage", harness.test()).await?.1["usage"]["grabs_last_30d"].as_u64();
    let body = json!({ "url": "https://example.com/once", "width": 320, "height": 240 });
    let creates = (0..1_000).map(|_| async {
        let request = harness.client.post(format!("{}/grabs", harness.base())).bearer_auth(harness.test());
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
    let after = harness.get("/usage", harness.test()).await?.1["usage"]["grabs_last_30d"].as_u64();
    assert_eq!(after, before.map(|before| before + 1));
    harness.finish().await
}
