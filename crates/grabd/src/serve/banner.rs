//! What a person sees at start: where everything is, with which keys, and what to type next.

use std::time::Duration;

use anyhow::{Context, bail};
use axum::body::{Body, to_bytes};
use axum::extract::ConnectInfo;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::{Request, StatusCode};
use grabd_browser::Jail;
use grabd_domain::grabs::ImageKey;
use tower::ServiceExt;

use super::{Keys, Service, first_run};
use crate::config::Config;
use crate::wiring;

/// Shows addresses, keys and a line to paste.
pub(super) fn show(config: &Config, service: &Service, keys: &Option<Keys>, has_people: bool) {
    let base = service.public_url();
    let browser = service.health();
    let slots = config.slots();
    println!("\ngrabd {} is up.\n", env!("CARGO_PKG_VERSION"));
    println!("  REST      {base}/v1");
    let oauth = config.oauth(base);
    println!("  MCP       {}", oauth.mcp_url);
    let open_to = match (config.accounts.sign_up, has_people) {
        (true, _) => " (open to all)",
        (false, true) => "",
        (false, false) => " (nobody has an account yet)",
    };
    println!("  pages     {}/sign-in{open_to}", oauth.issuer);
    println!("  gRPC      {}{}", service.grpc(), if config.grpc.reflection { " (with reflection)" } else { "" });
    println!("  health    {base}/healthz  {base}/readyz");
    println!("  metrics   http://{}/metrics", service.metrics());
    println!("  database  {}", wiring::describe_database(config));
    println!("  images    {}", wiring::images_dir(config).display());
    let version = browser.version.as_deref().unwrap_or("is starting");
    println!("  browser   {version}, sandboxed, {slots} grabs at a time");
    match service.browser().jail() {
        jail @ (Jail::Jailed | Jail::Unwanted) => println!("  jail      {jail}"),
        jail @ Jail::Impossible { .. } => println!("  jail      ATTENTION: {jail}. {}", Jail::REMEDY),
    }
    match config.egress.allow_cidrs.is_empty() {
        true => println!("  egress    public addresses only"),
        false => {
            let allowed: Vec<String> = config.egress.allow_cidrs.iter().map(ToString::to_string).collect();
            println!("  egress    ATTENTION: captures may also reach {}", allowed.join(", "));
        }
    }
    let Some(Keys { live_key, test_key, .. }) = keys else {
        println!("\nMake a team with its keys: {} admin team create NAME --credits 1000", program());
        return;
    };
    println!("  live key  {live_key}");
    println!("  test key  {test_key}");
    println!("            (kept in {})", first_run::path(config).display());
    println!("\nTry it:\n\n  {}\n", curl(base, live_key, "https://example.com"));
    if !has_people {
        println!("Make yourself an account for the pages:\n");
        println!("  {} admin user create you@example.com --operator\n", program());
    }
    println!("Stop with Ctrl-C. What is running then is finished first.\n");
}

/// What was typed to start this.
fn program() -> String {
    std::env::args().next().unwrap_or_else(|| "grabd".to_owned())
}

fn curl(base: &str, key: &str, url: &str) -> String {
    let body = serde_json::json!({ "url": url });
    format!("curl -sS {base}/v1/grabs -H 'Authorization: Bearer {key}' -H 'Content-Type: application/json' -d '{body}'")
}

/// Captures `url` as any caller would, and prints the answer and where the picture lies.
pub(super) async fn capture(config: &Config, service: &Service, keys: &Option<Keys>, url: &str) -> anyhow::Result<()> {
    let Some(keys) = keys else {
        bail!("--capture needs the first team's keys, and this database's teams were made by hand");
    };
    println!("Capturing {url} …");
    let request = Request::post("/v1/grabs")
        .header(AUTHORIZATION, format!("Bearer {}", keys.live_key))
        .header(CONTENT_TYPE, "application/json")
        .extension(ConnectInfo(service.http()))
        .body(Body::from(serde_json::json!({ "url": url }).to_string()))?;
    let response = service.router().oneshot(request).await?;
    let status = response.status();
    let body = to_bytes(response.into_body(), 1 << 20).await.context("the answer cannot be read")?;
    let answer: serde_json::Value = serde_json::from_slice(&body).context("the answer is not JSON")?;
    println!("HTTP {status}\n{}\n", serde_json::to_string_pretty(&answer)?);
    if status == StatusCode::OK {
        let key = answer["image_url"].as_str().and_then(|url| url.rsplit('/').next()).and_then(ImageKey::parse);
        if let Some(key) = key {
            println!("The picture lies at {}\n", wiring::images_dir(config).join(key.path()).display());
        }
    } else {
        println!("There is no picture, and nothing was charged. The service goes on; try another address:\n");
        println!("  {}\n", curl(service.public_url(), &keys.live_key, "https://example.com"));
    }
    Ok(())
}

/// Says that it is over.
pub(super) fn stopped() {
    println!("Stopped. Everything is where `serve` finds it again.");
}

/// Says that the end has begun.
pub(super) fn draining(grace: Duration) {
    println!(
        "\nStopping: open requests are being finished, at most {} s. Once more to leave at once.",
        grace.as_secs()
    );
}
