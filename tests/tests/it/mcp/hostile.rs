//! Hostile MCP input: malformed bodies, unusual ids, clients that disconnect. Nothing panics or leaks.

use std::time::Duration;

use anyhow::{Result, ensure};
use futures::future::join_all;
use grabd_tests::agent::{Agent, LEGACY, MODERN, read_response};
use grabd_tests::harness::TestApp;
use serde_json::json;

const NONE: &str = "\"arguments\":{}";
const NONE_OPEN: &str = "\"arguments\":{";

#[tokio::test(flavor = "multi_thread")]
async fn malformed_bodies_get_a_json_rpc_error() -> Result<()> {
    let app = TestApp::start_without_browser(1, &[]).await?;
    for version in [LEGACY[0], MODERN] {
        let agent = Agent::new(&app, app.live(), version);
        let good = agent.message(json!(1), "tools/list", json!({}));
        let call = agent.message(json!(1), "tools/call", json!({ "name": "create_grab", "arguments": {} })).to_string();
        let deep = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        let bodies: Vec<(Vec<u8>, u16, i64)> = vec![
            (b"".to_vec(), 400, -32600),
            (b"{".to_vec(), 400, -32700),
            (b"\xff\xfe".to_vec(), 400, -32700),
            (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xc3\x28\"}".to_vec(), 400, -32700),
            (b"null".to_vec(), 400, -32600),
            (b"\"tools/list\"".to_vec(), 400, -32600),
            (b"[]".to_vec(), 400, -32600),
            (br#"{"jsonrpc":"2.0","id":1,"id":1,"method":"ping"}"#.to_vec(), 400, -32600),
            (br#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#.to_vec(), 400, -32600),
            (br#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#.to_vec(), 400, -32600),
            (br#"{"jsonrpc":"2.0","id":1e400,"method":"ping"}"#.to_vec(), 400, -32600),
            (br#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#.to_vec(), 400, -32600),
            (br#"{"jsonrpc":"2.0","id":1,"method":{}}"#.to_vec(), 400, -32600),
            (br#"{"jsonrpc":"2.0","id":1,"method":"ping","params":"x"}"#.to_vec(), 400, -32600),
            (call.replace(NONE, &format!("{NONE_OPEN}\"a\":{}}}", deep(40))).into_bytes(), 400, -32600),
            (call.replace(NONE, &format!("{NONE_OPEN}\"a\":{}}}", deep(200_000))).into_bytes(), 400, -32600),
            (call.replace(NONE, "\"arguments\":{\"url\":1,\"url\":2}").into_bytes(), 400, -32600),
        ];
        for (body, status, code) in bodies {
            let answer = read_response(agent.send(agent.headers(&good), body.clone()).await?).await?;
            let shown = String::from_utf8_lossy(&body[..body.len().min(100)]).into_owned();
            assert_eq!((answer.status, answer.code()), (status, code), "{version} {shown}");
            assert!(answer.body.to_string().len() < 1000, "the error repeats too much of the request: {}", answer.body);
        }
        // Ids are returned unchanged.
        for id in [json!(0), json!(-1), json!(""), json!("é\"\\"), json!(u64::MAX), json!("x".repeat(100_000))] {
            let answer = agent.post(&agent.message(id.clone(), "tools/list", json!({}))).await?;
            assert_eq!(answer.body["id"], id);
        }
        let huge = "1".repeat(5000);
        let body = good.to_string().replacen("\"id\":1", &format!("\"id\":{huge}"), 1);
        let text = agent.send(agent.headers(&good), body).await?.text().await?;
        ensure!(text.contains(&format!("\"id\":{huge},")), "{}", &text[..200]);
        // Arguments of wrong types are tool errors.
        for tool in ["create_grab", "get_grab", "list_grabs", "get_usage", "get_pricing", "capture_site"] {
            for value in [json!(null), json!([]), json!({}), json!(1e300), json!("\u{0}"), json!(true)] {
                let arguments = json!({ "url": value, "id": value, "limit": value, "provider": value, "zzz": value });
                assert_eq!(agent.call(tool, arguments).await?.failure()?["error"]["code"], "bad_request");
                for name in
                    ["url", "id", "limit", "status", "starting_after", "provider", "detail", "selector", "width"]
                {
                    let answer = agent.call(tool, json!({ name: value })).await?;
                    ensure!(
                        answer.status == 200 && answer.body["result"].is_object(),
                        "{tool} {name} {value}: {answer:?}"
                    );
                }
            }
        }
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn disconnected_clients_release_their_credits() -> Result<()> {
    let app = TestApp::start(20, &[("browser.slots", "2")]).await?;
    let agent = Agent::new(&app, app.live(), MODERN);
    let calls = (0..12).map(|at| {
        let mut params = json!({ "name": "create_grab", "arguments": { "url": app.site.url("/hang") } });
        params["_meta"]["progressToken"] = json!(at);
        let message = agent.message(json!(at), "tools/call", params);
        let headers = agent.headers(&message);
        agent.send(headers, message.to_string())
    });
    let mut open = Vec::new();
    for answer in join_all(calls).await {
        open.push(answer?);
    }
    app.site.wait_for_hits("/hang", 2).await;
    let (_, usage) = app.get("/usage", app.live()).await?;
    assert_eq!(usage["credits"]["held"], 12);
    drop(open);
    // All cancelled grabs end well before their limit of 25 seconds.
    let ended = async {
        loop {
            let (_, open) = app.get("/grabs?status=failed&limit=100", app.live()).await?;
            if open["data"].as_array().map(Vec::len) == Some(12) {
                return Ok::<_, anyhow::Error>(());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(15), ended).await??;
    let (_, usage) = app.get("/usage", app.live()).await?;
    assert_eq!(usage["credits"], json!({"subscription": 0, "prepaid": 20, "total": 20, "held": 0}));
    let done = agent.call("create_grab", json!({ "url": app.site.url("/tiny") })).await?;
    assert_eq!(done.structured()?["status"], json!("done"));
    app.finish().await
}
