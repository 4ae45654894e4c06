//! The two eras: how each is recognised, what it wants, and what it answers.

use anyhow::{Context, Result};
use grabd_tests::agent::{Agent, LEGACY, MODERN, told};
use grabd_tests::harness::Harness;
use serde_json::{Value, json};

const SERVER: &str = "io.modelcontextprotocol/serverInfo";

#[tokio::test(flavor = "multi_thread")]
async fn the_modern_era_discovers_and_wants_its_metadata() -> Result<()> {
    let harness = Harness::start(0, &[]).await?;
    let agent = Agent::new(&harness, harness.test(), MODERN);
    let found = agent.ask("server/discover", json!({})).await?;
    let result = &found.body["result"];
    assert_eq!(
        (&result["resultType"], &result["ttlMs"], &result["cacheScope"]),
        (&json!("complete"), &json!(3_600_000), &json!("public"))
    );
    assert_eq!(result["capabilities"], json!({ "tools": {} }));
    assert_eq!(result["supportedVersions"], json!([MODERN, LEGACY[0], LEGACY[1], LEGACY[2]]));
    assert_eq!(result["_meta"][SERVER]["name"], "grabd");
    let listed = agent.ask("tools/list", json!({})).await?;
    let result = &listed.body["result"];
    assert_eq!(
        (&result["resultType"], &result["ttlMs"], &result["cacheScope"]),
        (&json!("complete"), &json!(3_600_000), &json!("public"))
    );
    assert_eq!(agent.ask("tools/list", json!({})).await?.body, listed.body, "always in the same order");

    // Whatever the era has removed, or never had, is not there.
    for method in [
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/list",
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

    // Each wrong thing has its code, and the error its id.
    let good = agent.message(json!("an id"), "tools/list", json!({}));
    let mut without = good.clone();
    without["params"]["_meta"] = json!({});
    let missing = agent.post(&without).await?;
    assert_eq!((missing.status, missing.code(), &missing.body["id"]), (400, -32602, &json!("an id")));
    let mut headers = agent.headers(&good);
    headers.remove("mcp-protocol-version");
    let absent = told(agent.send(headers, good.to_string()).await?).await?;
    assert_eq!(
        (absent.status, absent.code(), &absent.body["id"]),
        (400, -32020, &json!("an id")),
        "its metadata is modern"
    );
    let mut headers = agent.headers(&good);
    headers.insert("mcp-method", "tools/call".parse()?);
    let other = told(agent.send(headers, good.to_string()).await?).await?;
    assert_eq!((other.status, other.code()), (400, -32020));
    let mut headers = agent.headers(&good);
    headers.insert("mcp-method", "=?base64?dG9vbHMvbGlzdA==?=".parse()?);
    assert_eq!(told(agent.send(headers, good.to_string()).await?).await?.status, 200);
    let later = good.to_string().replace(MODERN, "2027-01-01");
    let mut headers = agent.headers(&good);
    headers.insert("mcp-protocol-version", "2027-01-01".parse()?);
    let later = told(agent.send(headers, later).await?).await?;
    assert_eq!((later.status, later.code()), (400, -32022));
    assert_eq!(later.body["error"]["data"]["supported"][0], MODERN);
    assert_eq!(later.body["error"]["data"]["requested"], "2027-01-01");

    let note = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    let taken = agent.post(&note).await?;
    assert_eq!((taken.status, taken.body), (202, Value::Null));
    harness.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_legacy_era_shakes_hands_and_keeps_no_session() -> Result<()> {
    let harness = Harness::start(0, &[]).await?;
    for version in LEGACY {
        let agent = Agent::new(&harness, harness.test(), version);
        let hello = |version: &str| json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } });
        let begun = agent.ask("initialize", hello(version)).await?;
        let result = &begun.body["result"];
        assert_eq!((&result["protocolVersion"], &result["capabilities"]), (&json!(version), &json!({ "tools": {} })));
        assert_eq!(result["serverInfo"]["name"], "grabd");
        assert!(begun.headers.get("mcp-session-id").is_none());
        for stranger in ["2024-11-05", MODERN, "2099-01-01", "x"] {
            let begun = agent.ask("initialize", hello(stranger)).await?;
            assert_eq!(begun.body["result"]["protocolVersion"], LEGACY[0], "{stranger}");
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
        // Errors stand in the body alone.
        for (method, code) in [("server/discover", -32601), ("resources/list", -32601), ("x", -32601)] {
            let error = agent.ask(method, json!({})).await?;
            assert_eq!((error.status, error.code(), &error.body["id"]), (200, code, &json!(1)), "{method}");
        }
        let unknown = agent.call("no_tool", json!({})).await?;
        assert_eq!((unknown.status, unknown.code()), (200, -32602));
    }
    // Who names no version speaks the oldest one; one that is not spoken is refused.
    let agent = Agent::new(&harness, harness.test(), LEGACY[2]);
    let ping = agent.message(json!(1), "ping", json!({}));
    let mut headers = agent.headers(&ping);
    headers.remove("mcp-protocol-version");
    assert_eq!(told(agent.send(headers.clone(), ping.to_string()).await?).await?.status, 200);
    headers.insert("mcp-protocol-version", "2024-11-05".parse()?);
    let refused = told(agent.send(headers, ping.to_string()).await?).await?;
    assert_eq!((refused.status, refused.code()), (400, -32022));
    harness.finish().await
}
