//! Clients that agents use, as their users install them: each connects with a key and by signing somebody in, lists and
//! calls every tool, in each era that it speaks. Then the protocol's own conformance suite.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use grabd_tests::harness::{Harness, PASSWORD};
use grabd_tests::programs::{node, root, run};
use http::header::{AUTHORIZATION, HOST};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

fn url(harness: &Harness) -> String {
    format!("http://{}/mcp", harness.service.http())
}

/// The two ways in: with a key that the client brings along, or by signing in a person of the team.
async fn ways_in(harness: &Harness) -> Result<[Value; 2]> {
    let email = "ada@example.com";
    harness.welcome(email).await?;
    Ok([json!({ "key": harness.live() }), json!({ "email": email, "password": PASSWORD })])
}

#[tokio::test(flavor = "multi_thread")]
async fn libraries_connect_list_and_call() -> Result<()> {
    let harness = Harness::start(20, &[]).await?;
    let ways_in = ways_in(&harness).await?;
    let python = root().join("target/python/bin/python");
    let handshake = "2025-11-25";
    let modern = "2026-07-28";
    for (program, script, era, version) in [
        (node(), "sdk1.mjs", "legacy", handshake),
        (node(), "sdk2.mjs", "legacy", handshake),
        (node(), "sdk2.mjs", "auto", modern),
        (node(), "sdk2.mjs", "modern", modern),
        (python.clone(), "client.py", "legacy", handshake),
        (python.clone(), "client.py", "auto", modern),
        (python, "client.py", "modern", modern),
    ] {
        for auth in &ways_in {
            let page = harness.site.url("/slow/300");
            let task = json!({ "url": url(&harness), "auth": auth, "era": era, "page": page });
            let script = root().join("tests/clients").join(script).display().to_string();
            let (content, said) = run(&program, &[script.clone(), task.to_string()]).await?;
            let expected = format!("spoke {version} and is content");
            ensure!(content && said.contains(&expected), "{script} in {era} with {auth} said: {said}");
        }
    }
    harness.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_inspector_lists_and_calls() -> Result<()> {
    let harness = Harness::start(20, &[]).await?;
    let inspector = root().join("node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js");
    let grab = harness.capture("/tiny", json!({})).await?.0;
    for era in ["legacy", "auto", "modern"] {
        let ask = async |method: &str, more: &[String]| {
            let mut arguments: Vec<String> = vec![
                inspector.display().to_string(),
                "--cli".to_owned(),
                url(&harness),
                "--transport".to_owned(),
                "http".to_owned(),
                "--header".to_owned(),
                format!("Authorization: Bearer {}", harness.live()),
                "--protocol-era".to_owned(),
                era.to_owned(),
                "--method".to_owned(),
                method.to_owned(),
            ];
            arguments.extend_from_slice(more);
            run(&node(), &arguments).await
        };
        let (content, said) = ask("tools/list", &["--strict".to_owned()]).await?;
        ensure!(content && said.contains("create_grab") && said.contains("get_pricing"), "{era}: {said}");
        for (tool, arguments, expected) in [
            ("create_grab", json!({ "url": harness.site.url("/tiny") }), "\"done\""),
            ("get_grab", json!({ "id": grab["id"] }), "\"done\""),
            ("list_grabs", json!({ "limit": 1 }), "has_more"),
            ("get_usage", json!({}), "live_grabs_last_30d"),
            ("get_pricing", json!({}), "per_grab_usd"),
        ] {
            let more = ["--tool-name", tool, "--tool-args-json", &arguments.to_string()].map(str::to_owned);
            let (content, said) = ask("tools/call", &more).await?;
            ensure!(content && said.contains(expected), "{era} {tool}: {said}");
        }
    }
    harness.finish().await
}

/// The suite's scenarios that are about a server like this one, and the revision each is run at.
///
/// The others want what is not offered: prompts, resources, completions, logging, sampling, elicitation and tasks; or tools
/// of the suite's own making (`test_…`), which are about libraries: a product has no use for them.
/// `server-session-lifecycle`, `server-sse-polling` and `server-sse-multiple-streams` are about sessions, of which there
/// are none. `caching` asks lists that are not offered beside `tools/list`, whose hints are tested here.
/// `http-custom-header-server-validation` is about headers that a tool's arguments are copied to; these tools name none.
const SCENARIOS: [(&str, &str); 7] = [
    ("server-initialize", "2025-06-18"),
    ("server-initialize", "2025-11-25"),
    ("ping", "2025-11-25"),
    ("tools-list", "2025-11-25"),
    ("tools-list", "2026-07-28"),
    ("dns-rebinding-protection", "2026-07-28"),
    ("http-header-validation", "2026-07-28"),
];

/// What `server-stateless` cannot see without the suite's own tools; everything else in it holds.
const OF_THE_SUITES_OWN: [&str; 4] = [
    "sep-2575-server-rejects-undeclared-capability",
    "sep-2575-missing-capability-http-400",
    "sep-2575-http-server-no-independent-requests-on-stream",
    "sep-2575-server-no-log-without-loglevel",
];

#[tokio::test(flavor = "multi_thread")]
async fn the_protocols_own_suite_is_content() -> Result<()> {
    // The suite calls as a page of the address that it is given.
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let origin = format!("http://{}", listener.local_addr()?);
    let harness = Harness::start(5, &[("mcp.allowed_origins", &origin)]).await?;
    let proxy = Proxy::start(&harness, listener)?;
    for (scenario, version) in SCENARIOS {
        let (failed, said) = conformance(&proxy, scenario, version).await?;
        ensure!(failed.is_empty(), "{scenario} at {version}: {failed:?} {said}");
    }
    let (failed, said) = conformance(&proxy, "server-stateless", "2026-07-28").await?;
    ensure!(failed == OF_THE_SUITES_OWN, "server-stateless: {failed:?} {said}");
    drop(proxy);
    harness.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_inspector_signs_somebody_in() -> Result<()> {
    let harness = Harness::start(3, &[]).await?;
    let email = "ada@example.com";
    harness.welcome(email).await?;
    let script = root().join("tests/clients/inspector.mjs").display().to_string();
    let list = json!(["--method", "tools/list"]);
    let usage = json!(["--method", "tools/call", "--tool-name", "get_usage"]);
    for era in ["legacy", "auto", "modern"] {
        for (ask, expected) in [(&list, "create_grab"), (&usage, "live_grabs_last_30d")] {
            let kept = tempfile::tempdir()?;
            let task = json!({
                "url": url(&harness), "email": email, "password": PASSWORD, "era": era, "dir": kept.path(), "ask": ask,
            });
            let (content, said) = run(&node(), &[script.clone(), task.to_string()]).await?;
            ensure!(content && said.contains(expected), "{era}, {ask}: {said}");
        }
    }
    harness.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_protocols_own_suite_signs_somebody_in() -> Result<()> {
    let harness = Harness::start(0, &[]).await?;
    let email = "ada@example.com";
    harness.welcome(email).await?;
    let origin = harness.service.public_url();
    let task = json!({ "origin": origin, "mcp": url(&harness), "email": email, "password": PASSWORD });
    let script = root().join("tests/clients/authorization.mjs").display().to_string();
    let (content, said) = run(&node(), &[script, task.to_string()]).await?;
    ensure!(content && said.contains("the suite ended with 0"), "{said}");
    harness.finish().await
}

/// Runs one scenario; the checks that failed, and everything it said.
async fn conformance(proxy: &Proxy, scenario: &str, version: &str) -> Result<(Vec<String>, String)> {
    let suite = root().join("node_modules/@modelcontextprotocol/conformance/dist/index.js").display().to_string();
    let dir = tempfile::tempdir()?;
    let results = dir.path().display().to_string();
    let arguments =
        [&suite, "server", "--url", &proxy.url, "--scenario", scenario, "--spec-version", version, "-o", &results];
    let (_, said) = run(&node(), &arguments.map(str::to_owned)).await?;
    let kept = std::fs::read_dir(dir.path())?.next().with_context(|| format!("{scenario} kept nothing: {said}"))??;
    let checks: Vec<Value> = serde_json::from_slice(&std::fs::read(kept.path().join("checks.json"))?)?;
    ensure!(checks.iter().any(|check| check["status"] == "SUCCESS"), "{scenario} checked nothing: {said}");
    let failed = checks.iter().filter(|check| check["status"] == "FAILURE");
    Ok((failed.filter_map(|check| check["id"].as_str().map(str::to_owned)).collect(), said))
}

/// Adds the credential to every request, because the suite has no way to.
struct Proxy {
    url: String,
    stop: CancellationToken,
}

impl Proxy {
    fn start(harness: &Harness, listener: TcpListener) -> Result<Self> {
        let to = Arc::new((
            harness.client.clone(),
            url(harness),
            harness.live().to_owned(),
            listener.local_addr()?.to_string(),
        ));
        let url = format!("http://{}/mcp", listener.local_addr()?);
        let router = axum::Router::new().fallback(forward).with_state(to);
        let stop = CancellationToken::new();
        let serve = async move { axum::serve(listener, router).await };
        TaskTracker::new().spawn(stop.clone().run_until_cancelled_owned(serve));
        Ok(Self { url, stop })
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

type To = Arc<(reqwest::Client, String, String, String)>;

async fn forward(State(to): State<To>, request: Request) -> Response {
    let (client, url, key, own) = &*to;
    let (mut parts, body) = request.into_parts();
    // Under its own name the proxy is the service; any other name is passed on.
    if parts.headers.get(HOST).is_some_and(|host| host.as_bytes() == own.as_bytes()) {
        parts.headers.remove(HOST);
    }
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap_or_default();
    let request = client.request(parts.method, url).headers(parts.headers).body(body);
    match request.header(AUTHORIZATION, format!("Bearer {key}")).send().await {
        Ok(answer) => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = answer.status();
            *response.headers_mut() = answer.headers().clone();
            *response.body_mut() = Body::from_stream(answer.bytes_stream());
            response
        }
        Err(error) => (http::StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    }
}
