//! Access checks of the MCP endpoint: methods, sizes, origins, hosts, credentials and rate limits.

use anyhow::{Context, Result};
use grabd_domain::credentials::{Environment, Scope, Scopes};
use grabd_engine::accounts::{self, KeyLimits};
use grabd_engine::clock::Clock;
use grabd_tests::agent::{Agent, LEGACY, MODERN, read_response};
use grabd_tests::harness::TestApp;
use reqwest::Method;
use reqwest::header::{HeaderName, HeaderValue};
use serde_json::{Value, json};

const PAGE: &str = "https://app.example.com";

fn header(value: &str) -> Result<HeaderValue> {
    Ok(HeaderValue::from_str(value)?)
}

#[tokio::test(flavor = "multi_thread")]
async fn only_single_posted_messages_of_limited_size_are_accepted() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[]).await?;
    for version in LEGACY.into_iter().chain([MODERN]) {
        let agent = Agent::new(&app, app.test(), version);
        let list = agent.message(json!(1), "tools/list", json!({}));
        for method in [Method::GET, Method::DELETE, Method::PUT, Method::HEAD] {
            let request = app.client.request(method.clone(), &agent.url).headers(agent.headers(&list));
            let refused = request.send().await?;
            assert_eq!((refused.status().as_u16(), &refused.headers()["allow"]), (405, &header("POST, OPTIONS")?));
        }
        // Bodies are limited to four MiB, with and without Content-Length.
        let whole = list.to_string();
        let fitting = format!("{whole}{}", " ".repeat((4 << 20) - whole.len()));
        assert_eq!(read_response(agent.send(agent.headers(&list), fitting.clone()).await?).await?.status, 200);
        let too_long = format!("{fitting} ");
        assert_eq!(agent.send(agent.headers(&list), too_long.clone()).await?.status(), 413);
        let chunks = futures::stream::iter([Ok::<_, std::io::Error>(too_long)]);
        assert_eq!(agent.send(agent.headers(&list), reqwest::Body::wrap_stream(chunks)).await?.status(), 413);

        let batch = read_response(agent.send(agent.headers(&list), format!("[{whole},{whole}]")).await?).await?;
        assert_eq!((batch.status, batch.code()), (400, -32600), "{version}");
        let mut headers = agent.headers(&list);
        headers.insert("content-type", header("text/plain")?);
        assert_eq!(agent.send(headers, whole.clone()).await?.status(), 415);
        let mut headers = agent.headers(&list);
        headers.insert("accept", header("text/html")?);
        assert_eq!(agent.send(headers, whole).await?.status(), 406);
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn cross_origin_and_foreign_host_requests_are_refused() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[("mcp.allowed_origins", PAGE)]).await?;
    let agent = Agent::new(&app, app.test(), MODERN);
    let list = agent.message(json!(1), "tools/list", json!({}));
    let with = async |name: &'static str, value: &str| {
        let mut headers = agent.headers(&list);
        headers.insert(HeaderName::from_static(name), header(value)?);
        agent.send(headers, list.to_string()).await
    };
    assert_eq!(with("user-agent", "no page").await?.status(), 200, "a request without an origin is not from a page");
    let page = with("origin", PAGE).await?;
    assert_eq!((page.status().as_u16(), &page.headers()["access-control-allow-origin"]), (200, &header(PAGE)?));
    assert!(
        page.headers()["access-control-expose-headers"].to_str()?.starts_with("WWW-Authenticate, MCP-Protocol-Version")
    );
    assert!(page.headers().get("access-control-allow-credentials").is_none());
    let port = app.service.http().port();
    let own = [format!("http://localhost:{port}"), format!("http://[::1]:{port}"), app.service.public_url().to_owned()];
    for origin in own {
        let allowed = with("origin", &origin).await?;
        assert_eq!(
            (allowed.status().as_u16(), allowed.headers().get("access-control-allow-origin")),
            (200, Some(&header(&origin)?))
        );
    }
    let neighbour = format!("http://localhost:{}", port ^ 1);
    for origin in ["https://evil.example", "http://app.example.com", "null", &neighbour] {
        let refused = with("origin", origin).await?;
        assert_eq!(refused.status(), 403, "{origin}");
        assert!(refused.headers().get("access-control-allow-origin").is_none());
    }
    for (host, status) in [
        (format!("127.0.0.1:{port}"), 200),
        ("127.0.0.1".to_owned(), 200),
        ("evil.example".to_owned(), 403),
        (format!("localhost:{port}"), 200),
        (format!("[::1]:{port}"), 200),
        (format!("localhost:{}", port ^ 1), 403),
        (format!("localhost.evil.example:{port}"), 403),
    ] {
        assert_eq!(with("host", &host).await?.status(), status, "{host}");
    }
    // A browser sends a preflight request and may read the refusal.
    let preflight = |origin: &'static str| {
        let request = app.client.request(Method::OPTIONS, &agent.url).header("origin", origin);
        request.header("access-control-request-method", "POST").send()
    };
    let allowed = preflight(PAGE).await?;
    assert_eq!(
        (allowed.status().as_u16(), &allowed.headers()["access-control-allow-methods"]),
        (204, &header("POST")?)
    );
    let asked = allowed.headers()["access-control-allow-headers"].to_str()?.to_owned();
    assert!(
        ["authorization", "content-type", "mcp-protocol-version", "mcp-method", "mcp-name"]
            .iter()
            .all(|name| asked.contains(name)),
        "{asked}"
    );
    assert_eq!(preflight("https://evil.example").await?.status(), 403);
    let mut headers = agent.headers(&list);
    headers.remove("authorization");
    headers.insert("origin", header(PAGE)?);
    let stranger = agent.send(headers, list.to_string()).await?;
    assert_eq!((stranger.status().as_u16(), &stranger.headers()["access-control-allow-origin"]), (401, &header(PAGE)?));
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn unauthenticated_requests_get_the_oauth_challenge() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[]).await?;
    let origin = app.service.public_url().to_owned();
    let metadata = format!("resource_metadata=\"{origin}/.well-known/oauth-protected-resource/mcp\", scope=\"grabs\"");
    let unknown = "sk_live_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    for version in LEGACY.into_iter().chain([MODERN]) {
        for (key, challenge) in [
            ("", format!("Bearer {metadata}")),
            ("nonsense", format!("Bearer error=\"invalid_token\", {metadata}")),
            (unknown, format!("Bearer error=\"invalid_token\", {metadata}")),
        ] {
            let agent = Agent::new(&app, key, version);
            let mut bodies: Vec<(Value, String)> = [
                ("initialize", json!({ "protocolVersion": version, "capabilities": {} })),
                ("server/discover", json!({})),
                ("tools/list", json!({})),
                ("tools/call", json!({ "name": "get_pricing", "arguments": {} })),
                ("tools/call", json!({ "name": "get_usage", "arguments": { "wrong": 1 } })),
                ("tools/call", json!({ "name": "create_grab", "arguments": {} })),
                ("tools/call", json!({ "name": "no_tool", "arguments": {} })),
                ("ping", json!({})),
                ("no/method", json!({})),
            ]
            .into_iter()
            .map(|(method, params)| agent.message(json!(1), method, params))
            .map(|message| (message.clone(), message.to_string()))
            .collect();
            let note = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
            bodies.extend([(note.clone(), note.to_string()), (note.clone(), "{".to_owned()), (note, "[]".to_owned())]);
            for (message, body) in bodies {
                let refused = read_response(agent.send(agent.headers(&message), body.clone()).await?).await?;
                assert_eq!(
                    (refused.status, &refused.headers["www-authenticate"]),
                    (401, &header(&challenge)?),
                    "{body}"
                );
                assert_eq!(refused.body["error"]["code"], "unauthorized", "{body}");
            }
        }
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn unauthenticated_requests_are_limited_per_address_and_calls_per_team() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[("limits.requests_per_minute", "3")]).await?;
    let known = Agent::new(&app, app.test(), MODERN);
    // Only tool calls are counted, once each, whatever the result.
    for _ in 0..5 {
        assert_eq!(known.ask("tools/list", json!({})).await?.status, 200);
        assert_eq!(known.call("no_tool", json!({})).await?.code(), -32602);
    }
    let left =
        |answer: &grabd_tests::agent::McpResponse| answer.headers["ratelimit"].to_str().unwrap_or_default().to_owned();
    let first = known.call("get_pricing", json!({})).await?;
    assert_eq!((first.result()?["isError"].clone(), left(&first).contains("r=2")), (json!(false), true), "{first:?}");
    let second = known.call("get_usage", json!({ "wrong": 1 })).await?;
    assert_eq!(second.failure()?["error"]["code"], "bad_request");
    assert!(left(&second).contains("r=1"), "{second:?}");
    let third = known.call("create_grab", json!({ "url": "https://example.com/" })).await?;
    assert!(third.result().is_ok() && left(&third).contains("r=0"), "{third:?}");
    // The refusal is a tool error, because agents do not see the HTTP status.
    let over = known.call("get_usage", json!({})).await?;
    let failure = over.failure()?;
    assert_eq!(failure["error"]["code"], "rate_limit_exceeded", "{over:?}");
    assert!(
        failure["error"]["message"].as_str().is_some_and(|text| text.contains("Retry in"))
            && failure["hint"].is_string()
    );
    assert!(over.headers.contains_key("retry-after"));
    assert_eq!(known.ask("tools/list", json!({})).await?.status, 200, "listing tools is not counted");

    let stranger = Agent::new(&app, "", MODERN);
    let mut statuses = Vec::new();
    for _ in 0..5 {
        statuses.push(stranger.ask("tools/list", json!({})).await?.status);
    }
    assert_eq!(statuses, [401, 401, 401, 429, 429]);
    let guess = Agent::new(&app, "guess", MODERN);
    assert_eq!(guess.ask("tools/list", json!({})).await?.status, 429);
    assert_eq!(
        known.ask("tools/list", json!({})).await?.status,
        200,
        "authenticated clients are not counted per address"
    );
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn key_without_the_scope_of_a_tool_is_told_which_one_it_lacks() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[]).await?;
    let limits = KeyLimits { scopes: Scopes::new([Scope::Read]).context("scopes")?, life: None };
    let (store, now) = (app.service.store(), Clock::system().now());
    let (team, test) = (app.team.team, Environment::Test);
    let (_, key) = accounts::issue_restricted_key(store, team, test, "reader", limits, now).await?;
    for version in LEGACY.into_iter().chain([MODERN]) {
        let agent = Agent::new(&app, key.expose(), version);
        let usage = agent.ask("tools/call", json!({ "name": "get_usage", "arguments": {} })).await?;
        assert_eq!(usage.status, 200, "{version}: {}", usage.body);
        let arguments = json!({ "url": "https://example.com/" });
        let create = agent.message(json!(2), "tools/call", json!({ "name": "create_grab", "arguments": arguments }));
        let refused = agent.send(agent.headers(&create), create.to_string()).await?;
        assert_eq!(refused.status(), 403, "{version}");
        let metadata = format!("{}/.well-known/oauth-protected-resource/mcp", app.service.public_url());
        let challenge =
            format!("Bearer error=\"insufficient_scope\", scope=\"grabs\", resource_metadata=\"{metadata}\"");
        assert_eq!(refused.headers()["www-authenticate"], header(&challenge)?);
        let body: Value = refused.json().await?;
        assert_eq!(body["error"]["code"], "forbidden", "{body}");
    }
    app.finish().await
}
