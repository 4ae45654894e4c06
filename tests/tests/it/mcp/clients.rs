//! Third-party MCP clients: each connects with a key and by OAuth, and lists and calls every tool in each supported
//! era. Also the protocol's conformance suite.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use grabd_tests::harness::{PASSWORD, TestApp};
use grabd_tests::programs::{node, root, run};
use http::header::{AUTHORIZATION, HOST};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

fn url(app: &TestApp) -> String {
    format!("http://{}/mcp", app.service.http())
}

/// The two kinds of credentials: a key, or a team member's sign-in.
async fn credentials(app: &TestApp) -> Result<[Value; 2]> {
    let email = "ada@example.com";
    app.create_member(email).await?;
    Ok([json!({ "key": app.live() }), json!({ "email": email, "password": PASSWORD })])
}

/// The protocol version that clients with a handshake negotiate.
const HANDSHAKE: &str = "2025-11-25";
/// The protocol version without a handshake.
const MODERN: &str = "2026-07-28";

#[tokio::test(flavor = "multi_thread")]
async fn typescript_client_library_1_connects_and_calls_every_tool() -> Result<()> {
    connect_and_call(&node(), "sdk1.mjs", &[("legacy", HANDSHAKE)]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn typescript_client_library_2_connects_and_calls_every_tool() -> Result<()> {
    connect_and_call(&node(), "sdk2.mjs", &[("legacy", HANDSHAKE), ("auto", MODERN), ("modern", MODERN)]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn python_client_library_connects_and_calls_every_tool() -> Result<()> {
    let python = root().join("target/python/bin/python");
    connect_and_call(&python, "client.py", &[("legacy", HANDSHAKE), ("auto", MODERN), ("modern", MODERN)]).await
}

/// Runs a client in each mode, with an API key and with the OAuth flow, and checks the protocol version that it
/// negotiates.
async fn connect_and_call(program: &Path, script: &str, eras: &[(&str, &str)]) -> Result<()> {
    let app = TestApp::start(20, &[]).await?;
    let credentials = credentials(&app).await?;
    let path = root().join("tests/clients").join(script).display().to_string();
    for (era, version) in eras {
        for auth in &credentials {
            let page = app.site.url("/slow/300");
            let task = json!({ "url": url(&app), "auth": auth, "era": era, "page": page });
            let (success, output) = run(program, &[path.clone(), task.to_string()]).await?;
            let expected = format!("negotiated {version}; all checks passed");
            ensure!(success && output.contains(&expected), "{script} in {era} with {auth} output: {output}");
        }
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn inspector_lists_and_calls_every_tool() -> Result<()> {
    let app = TestApp::start(20, &[]).await?;
    let inspector = root().join("node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js");
    let grab = app.capture("/tiny", json!({})).await?.0;
    for era in ["legacy", "auto", "modern"] {
        let call_inspector = async |method: &str, more: &[String]| {
            let mut arguments: Vec<String> = vec![
                inspector.display().to_string(),
                "--cli".to_owned(),
                url(&app),
                "--transport".to_owned(),
                "http".to_owned(),
                "--header".to_owned(),
                format!("Authorization: Bearer {}", app.live()),
                "--protocol-era".to_owned(),
                era.to_owned(),
                "--method".to_owned(),
                method.to_owned(),
            ];
            arguments.extend_from_slice(more);
            run(&node(), &arguments).await
        };
        let (success, output) = call_inspector("tools/list", &["--strict".to_owned()]).await?;
        ensure!(success && output.contains("create_grab") && output.contains("get_pricing"), "{era}: {output}");
        for (tool, arguments, expected) in [
            ("create_grab", json!({ "url": app.site.url("/tiny") }), "\"done\""),
            ("get_grab", json!({ "id": grab["id"] }), "\"done\""),
            ("list_grabs", json!({ "limit": 1 }), "has_more"),
            ("get_usage", json!({}), "live_grabs_last_30d"),
            ("get_pricing", json!({}), "per_grab_usd"),
        ] {
            let more = ["--tool-name", tool, "--tool-args-json", &arguments.to_string()].map(str::to_owned);
            let (success, output) = call_inspector("tools/call", &more).await?;
            ensure!(success && output.contains(expected), "{era} {tool}: {output}");
        }
    }
    app.finish().await
}

/// The suite's scenarios that apply to this server, and the revision at which each is run.
///
/// The other scenarios need features that are not offered: prompts, completions, logging, sampling, elicitation and tasks,
/// or the suite's own tools and resources (`test_…`), which are meant for libraries.
/// `server-session-lifecycle`, `server-sse-polling` and `server-sse-multiple-streams` need sessions, which do not
/// exist. `caching` checks lists that are not offered besides `tools/list`, whose hints are tested here.
/// `http-custom-header-server-validation` checks headers copied from tool arguments, which these tools do not use.
const SCENARIOS: [(&str, &str); 7] = [
    ("server-initialize", "2025-06-18"),
    ("server-initialize", "2025-11-25"),
    ("ping", "2025-11-25"),
    ("tools-list", "2025-11-25"),
    ("tools-list", "2026-07-28"),
    ("dns-rebinding-protection", "2026-07-28"),
    ("http-header-validation", "2026-07-28"),
];

/// Checks of `server-stateless` that need the suite's own tools. All its other checks pass.
const NEEDS_SUITE_TOOLS: [&str; 4] = [
    "sep-2575-server-rejects-undeclared-capability",
    "sep-2575-missing-capability-http-400",
    "sep-2575-http-server-no-independent-requests-on-stream",
    "sep-2575-server-no-log-without-loglevel",
];

#[tokio::test(flavor = "multi_thread")]
async fn conformance_suite_passes() -> Result<()> {
    // The suite sends requests with the origin of the URL that it is given.
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let origin = format!("http://{}", listener.local_addr()?);
    let app = TestApp::start_without_browser(5, &[("mcp.allowed_origins", &origin)]).await?;
    let proxy = Proxy::start(&app, listener)?;
    for (scenario, version) in SCENARIOS {
        let (failed, output) = conformance(&proxy, scenario, version).await?;
        ensure!(failed.is_empty(), "{scenario} at {version}: {failed:?} {output}");
    }
    let (failed, output) = conformance(&proxy, "server-stateless", "2026-07-28").await?;
    ensure!(failed == NEEDS_SUITE_TOOLS, "server-stateless: {failed:?} {output}");
    drop(proxy);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn inspector_connects_by_oauth() -> Result<()> {
    let app = TestApp::start_without_browser(3, &[]).await?;
    let email = "ada@example.com";
    app.create_member(email).await?;
    let script = root().join("tests/clients/inspector.mjs").display().to_string();
    let list = json!(["--method", "tools/list"]);
    let usage = json!(["--method", "tools/call", "--tool-name", "get_usage"]);
    for era in ["legacy", "auto", "modern"] {
        for (arguments, expected) in [(&list, "create_grab"), (&usage, "live_grabs_last_30d")] {
            let results_dir = tempfile::tempdir()?;
            let task = json!({
                "url": url(&app), "email": email, "password": PASSWORD, "era": era, "dir": results_dir.path(), "ask": arguments,
            });
            let (success, output) = run(&node(), &[script.clone(), task.to_string()]).await?;
            ensure!(success && output.contains(expected), "{era}, {arguments}: {output}");
        }
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn authorization_conformance_suite_passes() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[]).await?;
    let email = "ada@example.com";
    app.create_member(email).await?;
    let origin = app.service.public_url();
    let task = json!({ "origin": origin, "mcp": url(&app), "email": email, "password": PASSWORD });
    let script = root().join("tests/clients/authorization.mjs").display().to_string();
    let (success, output) = run(&node(), &[script, task.to_string()]).await?;
    ensure!(success && output.contains("the suite ended with 0"), "{output}");
    app.finish().await
}

/// Runs one scenario. Returns the failed checks and the output.
async fn conformance(proxy: &Proxy, scenario: &str, version: &str) -> Result<(Vec<String>, String)> {
    let suite = root().join("node_modules/@modelcontextprotocol/conformance/dist/index.js").display().to_string();
    let dir = tempfile::tempdir()?;
    let results = dir.path().display().to_string();
    let arguments =
        [&suite, "server", "--url", &proxy.url, "--scenario", scenario, "--spec-version", version, "-o", &results];
    let (_, output) = run(&node(), &arguments.map(str::to_owned)).await?;
    let results_dir =
        std::fs::read_dir(dir.path())?.next().with_context(|| format!("{scenario} wrote no results: {output}"))??;
    let checks: Vec<Value> = serde_json::from_slice(&std::fs::read(results_dir.path().join("checks.json"))?)?;
    ensure!(checks.iter().any(|check| check["status"] == "SUCCESS"), "{scenario} has no successful check: {output}");
    let failed = checks.iter().filter(|check| check["status"] == "FAILURE");
    Ok((failed.filter_map(|check| check["id"].as_str().map(str::to_owned)).collect(), output))
}

/// A proxy that adds the credential to every request, because the suite cannot.
struct Proxy {
    url: String,
    stop: CancellationToken,
}

impl Proxy {
    fn start(app: &TestApp, listener: TcpListener) -> Result<Self> {
        let to = Arc::new((app.client.clone(), url(app), app.live().to_owned(), listener.local_addr()?.to_string()));
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

type To = Arc<(grabd_tests::client::Client, String, String, String)>;

async fn forward(State(to): State<To>, request: Request) -> Response {
    let (client, url, key, own) = &*to;
    let (mut parts, body) = request.into_parts();
    // Requests to the proxy's own host are forwarded with the service's host. Any other host is passed on.
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
