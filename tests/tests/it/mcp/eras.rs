//! The two protocol eras: how each is recognised, what it requires, and how it responds.

use anyhow::{Context, Result};
use grabd_tests::agent::{Agent, LEGACY, MODERN, read_response};
use grabd_tests::harness::TestApp;
use serde_json::{Value, json};

const SERVER: &str = "io.modelcontextprotocol/serverInfo";

#[tokio::test(flavor = "multi_thread")]
async fn modern_era_supports_discovery_and_requires_metadata() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[]).await?;
    let agent = Agent::new(&app, app.test(), MODERN);
    let found = agent.ask("server/discover", json!({})).await?;
    let result = &found.body["result"];
    assert_eq!(
        (&result["resultType"], &result["ttlMs"], &result["cacheScope"]),
        (&json!("complete"), &json!(3_600_000), &json!("public"))
    );
    assert_eq!(result["capabilities"], json!({ "tools": {}, "resources": {} }));
    assert_eq!(result["supportedVersions"], json!([MODERN, LEGACY[0], LEGACY[1], LEGACY[2]]));
    assert_eq!(result["_meta"][SERVER]["name"], "grabd");
    let listed = agent.ask("tools/list", json!({})).await?;
    let result = &listed.body["result"];
    assert_eq!(
        (&result["resultType"], &result["ttlMs"], &result["cacheScope"]),
        (&json!("complete"), &json!(3_600_000), &json!("public"))
    );
    assert_eq!(agent.ask("tools/list", json!({})).await?.body, listed.body, "the order of tools is stable");

    // Methods that the era has removed or never had do not exist.
    for method in [
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "prompts/list",
        "tasks/get",
        "sampling/createMessage",
        "x",
    ] {
        let gone = agent.ask(method, json!({})).await?;
        assert_eq!((gone.status, gone.code(), &gone.body["id"]), (404, -32601, &json!(1)), "{method}");
    }
    let unknown = agent.call("no_tool", json!({})).await?;
    assert_eq!((unknown.status, unknown.code()), (400, -32602));
    assert_eq!(agent.ask("tools/call", json!({})).await?.code(), -32602);

    // Each error has its code, and the id of the request.
    let good = agent.message(json!("an id"), "tools/list", json!({}));
    let mut without = good.clone();
    without["params"]["_meta"] = json!({});
    let missing = agent.post(&without).await?;
    assert_eq!((missing.status, missing.code(), &missing.body["id"]), (400, -32602, &json!("an id")));
    let mut headers = agent.headers(&good);
    headers.remove("mcp-protocol-version");
    let absent = read_response(agent.send(headers, good.to_string()).await?).await?;
    assert_eq!(
        (absent.status, absent.code(), &absent.body["id"]),
        (400, -32020, &json!("an id")),
        "the metadata identifies the modern era"
    );
    let mut headers = agent.headers(&good);
    headers.insert("mcp-method", "tools/call".parse()?);
    let other = read_response(agent.send(headers, good.to_string()).await?).await?;
    assert_eq!((other.status, other.code()), (400, -32020));
    let mut headers = agent.headers(&good);
    headers.insert("mcp-method", "=?base64?dG9vbHMvbGlzdA==?=".parse()?);
    assert_eq!(read_response(agent.send(headers, good.to_string()).await?).await?.status, 200);
    let later = good.to_string().replace(MODERN, "2027-01-01");
    let mut headers = agent.headers(&good);
    headers.insert("mcp-protocol-version", "2027-01-01".parse()?);
    let later = read_response(agent.send(headers, later).await?).await?;
    assert_eq!((later.status, later.code()), (400, -32022));
    assert_eq!(later.body["error"]["data"]["supported"][0], MODERN);
    assert_eq!(later.body["error"]["data"]["requested"], "2027-01-01");

    let note = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    let taken = agent.post(&note).await?;
    assert_eq!((taken.status, taken.body), (202, Value::Null));
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn legacy_era_initializes_without_a_session() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[]).await?;
    for version in LEGACY {
        let agent = Agent::new(&app, app.test(), version);
        let initialize_params = |version: &str| json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } });
        let initialized = agent.ask("initialize", initialize_params(version)).await?;
        let result = &initialized.body["result"];
        let capabilities = json!({ "tools": {}, "resources": {} });
        assert_eq!((&result["protocolVersion"], &result["capabilities"]), (&json!(version), &capabilities));
        assert_eq!(result["serverInfo"]["name"], "grabd");
        assert!(initialized.headers.get("mcp-session-id").is_none());
        for unsupported in ["2024-11-05", MODERN, "2099-01-01", "x"] {
            let initialized = agent.ask("initialize", initialize_params(unsupported)).await?;
            assert_eq!(initialized.body["result"]["protocolVersion"], LEGACY[0], "{unsupported}");
        }
        assert_eq!(agent.ask("initialize", json!({})).await?.code(), -32602);
        let note = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let taken = agent.post(&note).await?;
        assert_eq!((taken.status, taken.body), (202, Value::Null));
        let answer = agent.post(&json!({ "jsonrpc": "2.0", "id": 1, "result": {} })).await?;
        assert_eq!((answer.status, answer.body), (202, Value::Null));

        assert_eq!(agent.ask("ping", json!({})).await?.body, json!({ "jsonrpc": "2.0", "id": 1, "result": {} }));
        let listed = agent.ask("tools/list", json!({})).await?;
        let result = listed.body["result"].as_object().context("a result")?;
        assert!(!result.contains_key("resultType") && !result.contains_key("_meta"));
        assert_eq!((&result["ttlMs"], &result["cacheScope"]), (&json!(3_600_000), &json!("public")));
        // Errors are reported only in the body, with status 200.
        for (method, code) in [("server/discover", -32601), ("resources/subscribe", -32601), ("x", -32601)] {
            let error = agent.ask(method, json!({})).await?;
            assert_eq!((error.status, error.code(), &error.body["id"]), (200, code, &json!(1)), "{method}");
        }
        let unknown = agent.call("no_tool", json!({})).await?;
        assert_eq!((unknown.status, unknown.code()), (200, -32602));
    }
    // Without a version the oldest one is assumed. Unsupported versions are refused.
    let agent = Agent::new(&app, app.test(), LEGACY[2]);
    let ping = agent.message(json!(1), "ping", json!({}));
    let mut headers = agent.headers(&ping);
    headers.remove("mcp-protocol-version");
    assert_eq!(read_response(agent.send(headers.clone(), ping.to_string()).await?).await?.status, 200);
    headers.insert("mcp-protocol-version", "2024-11-05".parse()?);
    let refused = read_response(agent.send(headers, ping.to_string()).await?).await?;
    assert_eq!((refused.status, refused.code()), (400, -32022));
    app.finish().await
}
