//! The text printed at start: addresses, keys, and what to do next.

use std::time::Duration;

use anyhow::{Context, bail};
use axum::body::{Body, to_bytes};
use axum::extract::ConnectInfo;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::{Request, StatusCode};
use grabd_browser::{Chromium, Jail};
use grabd_domain::credentials::Environment;
use grabd_domain::grabs::ImageKey;
use grabd_images::Location;
use tower::ServiceExt;

use super::first_run::{self, FirstTeam, Keys};
use super::limits_in_force;
use super::{RendererProcess, Service};
use crate::config::{Config, LogFormat, ProcessRole};
use crate::output::print_line;
use crate::wiring;

/// Whether a user or a script reads standard output. A journal gets lines of the log instead, and so does whoever
/// collects the log as JSON, usually together with standard output.
fn is_read(config: &Config) -> bool {
    config.log.format == LogFormat::Text && !is_journal()
}

/// Whether systemd has connected standard output to its journal.
fn is_journal() -> bool {
    let Some(stream) = std::env::var_os("JOURNAL_STREAM") else { return false };
    rustix::fs::fstat(std::io::stdout())
        .is_ok_and(|stdout| stream.to_str() == Some(&*format!("{}:{}", stdout.st_dev, stdout.st_ino)))
}

/// The same in the log.
fn log_start(config: &Config, service: &Service, team: &FirstTeam) {
    let renderers = service.renderers().map(|address| address.to_string());
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        role = config.role.as_str(),
        rest = format!("{}/v1", service.public_url()),
        listening = %service.http(),
        grpc = %service.grpc(),
        metrics = %service.metrics(),
        renderers,
        database = wiring::describe_database(config),
        images = wiring::describe_images(config),
        "grabd is up"
    );
    if let Some(jail @ Jail::Unavailable { .. }) = service.browser().map(Chromium::jail) {
        tracing::warn!("{jail}. {}", Jail::REMEDY);
    }
    if !config.egress.allow_cidrs.is_empty() {
        let allowed: Vec<String> = config.egress.allow_cidrs.iter().map(ToString::to_string).collect();
        tracing::warn!(allowed = allowed.join(", "), "captures may also reach addresses that are not public");
    }
    if let FirstTeam::Made(_) = team {
        let file = first_run::path(config);
        tracing::info!(file = %file.display(), "the keys of the first team are in a file");
    }
}

/// Prints the addresses, and an example command. Keys are printed only at the start that made them.
pub(super) fn show(config: &Config, service: &Service, team: &FirstTeam, prints_keys: bool, has_users: bool) {
    if !is_read(config) {
        return log_start(config, service, team);
    }
    if config.role != ProcessRole::All {
        return show_role(config, service);
    }
    let base = service.public_url();
    let browser = service.health();
    let slots = config.slots();
    print_line!("\ngrabd {} is up.\n", env!("CARGO_PKG_VERSION"));
    print_line!("  REST      {base}/v1");
    let oauth = config.oauth(base);
    print_line!("  MCP       {}", oauth.mcp_url);
    let open_to = match (config.accounts.sign_up, has_users) {
        (true, _) => " (open to all)",
        (false, true) => "",
        (false, false) => " (nobody has an account yet)",
    };
    print_line!("  pages     {}/sign-in{open_to}", oauth.issuer);
    print_line!("  gRPC      {}{}", service.grpc(), if config.grpc.reflection { " (with reflection)" } else { "" });
    print_line!("  health    {base}/healthz  {base}/readyz");
    print_line!("  metrics   http://{}/metrics", service.metrics());
    print_line!("  database  {}", wiring::describe_database(config));
    print_line!("  images    {}", wiring::describe_images(config));
    let version = browser.version.as_deref().unwrap_or("is starting");
    print_line!("  browser   {version}, sandboxed, {slots} grabs at a time");
    match service.browser().map_or(&Jail::Disabled, Chromium::jail) {
        jail @ (Jail::Jailed | Jail::Disabled) => print_line!("  jail      {jail}"),
        jail @ Jail::Unavailable { .. } => print_line!("  jail      ATTENTION: {jail}. {}", Jail::REMEDY),
    }
    match config.egress.allow_cidrs.is_empty() {
        true => print_line!("  egress    public addresses only"),
        false => {
            let allowed: Vec<String> = config.egress.allow_cidrs.iter().map(ToString::to_string).collect();
            print_line!("  egress    ATTENTION: captures may also reach {}", allowed.join(", "));
        }
    }
    for (at, line) in limits_in_force::describe(config).iter().enumerate() {
        print_line!("  {:<10}{line}", if at == 0 { "limits" } else { "" });
    }
    print_line!("            for one team: {} admin team limits TEAM --set requests_per_minute=600", program());
    let team = match team {
        FirstTeam::Made(_) if !prints_keys => {
            print_line!("  keys      of the team “{}”, in {}", first_run::NAME, first_run::path(config).display());
            print_line!(
                "\nTry it, with a key in GRAB_API_KEY:\n\n  {}\n",
                curl(base, "'\"$GRAB_API_KEY\"'", "https://example.com")
            );
            first_run::NAME
        }
        FirstTeam::Made(Keys { live_key, test_key, .. }) => {
            print_line!("  live key  {live_key}");
            print_line!("  test key  {test_key}");
            print_line!("            (shown only now, and kept in {})", first_run::path(config).display());
            print_line!("\nTry it:\n\n  {}\n", curl(base, live_key, "https://example.com"));
            first_run::NAME
        }
        FirstTeam::Earlier { team, keys, live_key: _ } => {
            print_line!("  live key  {}", first_run::describe(keys, Environment::Live));
            print_line!("  test key  {}", first_run::describe(keys, Environment::Test));
            print_line!("\nMake another key:\n\n  {} admin key create {team}\n", program());
            print_line!(
                "Try it, with a key in GRAB_API_KEY:\n\n  {}\n",
                curl(base, "'\"$GRAB_API_KEY\"'", "https://example.com")
            );
            team.as_str()
        }
        FirstTeam::None => {
            print_line!("\nCreate a team with its keys: {} admin team create NAME --credits 1000", program());
            return;
        }
    };
    if !has_users {
        print_line!("Create an account for the pages:\n");
        print_line!("  {} admin user create you@example.com --operator --team {team}\n", program());
    }
    print_line!("Stop with Ctrl-C. Open requests are finished first.\n");
}

/// Prints the addresses of an edge or a core.
fn show_role(config: &Config, service: &Service) {
    print_line!("\ngrabd {} is up as {} of a cluster.\n", env!("CARGO_PKG_VERSION"), config.role.as_str());
    if config.role == ProcessRole::Edge {
        print_line!("  listening http://{}", service.http());
        print_line!("  REST      {}/v1", service.public_url());
    } else {
        print_line!("  gRPC      {}{}", service.grpc(), if config.grpc.reflection { " (with reflection)" } else { "" });
        let tls = if config.cluster.tls_files().is_some() { "mutual TLS" } else { "plain text" };
        match service.renderers() {
            Some(address) => print_line!("  renderers {address} ({tls})"),
            None => print_line!("  renderers ATTENTION: none can attach; set GRABD_CLUSTER__LISTEN"),
        }
    }
    print_line!("  health    http://{0}/healthz  http://{0}/readyz", service.http());
    print_line!("  metrics   http://{}/metrics", service.metrics());
    print_line!("  database  {}", wiring::describe_database(config));
    print_line!("  images    {}", wiring::describe_images(config));
    print_line!("\nProcesses of the cluster: {} admin nodes", program());
    print_line!("Stop with SIGTERM or Ctrl-C. Open requests are finished first.\n");
}

/// Prints the addresses of a renderer.
pub(super) fn show_renderer(config: &Config, renderer: &RendererProcess) {
    if !is_read(config) {
        let (cores, metrics) = (config.renderer.cores.join(", "), renderer.metrics());
        return tracing::info!(version = env!("CARGO_PKG_VERSION"), role = "renderer", cores, %metrics, "grabd is up");
    }
    print_line!("\ngrabd {} is up as renderer of a cluster.\n", env!("CARGO_PKG_VERSION"));
    print_line!("  cores     {}", config.renderer.cores.join(", "));
    print_line!("  health    http://{0}/healthz  http://{0}/readyz", renderer.http());
    print_line!("  metrics   http://{}/metrics", renderer.metrics());
    let version = renderer.browser().health().version;
    let version = version.as_deref().unwrap_or("is starting");
    print_line!("  browser   {version}, sandboxed, {} grabs at a time", config.slots());
    print_line!("\nStop with SIGTERM or Ctrl-C. Renders in progress are finished first.\n");
}

/// The name under which this program was started.
fn program() -> String {
    std::env::args().next().unwrap_or_else(|| "grabd".to_owned())
}

fn curl(base: &str, key: &str, url: &str) -> String {
    let body = serde_json::json!({ "url": url });
    format!("curl -sS {base}/v1/grabs -H 'Authorization: Bearer {key}' -H 'Content-Type: application/json' -d '{body}'")
}

/// Captures `url` through the REST API, and prints the response and the path of the image.
pub(super) async fn capture(config: &Config, service: &Service, team: &FirstTeam, url: &str) -> anyhow::Result<()> {
    let Some(live_key) = team.live_key() else {
        bail!(
            "--capture needs the keys of the first team, which is created if there is no team; {} has none",
            first_run::path(config).display()
        );
    };
    print_line!("Capturing {url} …");
    let request = Request::post("/v1/grabs")
        .header(AUTHORIZATION, format!("Bearer {live_key}"))
        .header(CONTENT_TYPE, "application/json")
        .extension(ConnectInfo(service.http()))
        .body(Body::from(serde_json::json!({ "url": url }).to_string()))?;
    let response = service.router().oneshot(request).await?;
    let status = response.status();
    let body = to_bytes(response.into_body(), 1 << 20).await.context("the response cannot be read")?;
    let response_json: serde_json::Value = serde_json::from_slice(&body).context("the response is not JSON")?;
    print_line!("HTTP {status}\n{}\n", serde_json::to_string_pretty(&response_json)?);
    if status == StatusCode::OK {
        let key = response_json["image_url"].as_str().and_then(|url| url.rsplit('/').next()).and_then(ImageKey::parse);
        if let (Some(key), Location::Directory(root)) = (key, wiring::images_location(config)) {
            print_line!("The image file is {}\n", root.join(key.path()).display());
        }
    } else {
        print_line!("No image was captured, and nothing was charged. Try another URL, with a key in GRAB_API_KEY:\n");
        print_line!("  {}\n", curl(service.public_url(), "'\"$GRAB_API_KEY\"'", "https://example.com"));
    }
    Ok(())
}

/// Prints that the service has stopped.
pub(super) fn stopped(config: &Config) {
    if !is_read(config) {
        return tracing::info!("grabd has stopped");
    }
    print_line!("Stopped. All data is kept for the next `serve`.");
}

/// Prints that the service is stopping.
pub(super) fn draining(config: &Config, grace: Duration) {
    let seconds = grace.as_secs();
    if !is_read(config) {
        return tracing::info!(at_most_seconds = seconds, "grabd is stopping: open requests are being finished");
    }
    print_line!("\nStopping: open requests are being finished, at most {seconds} s. Repeat to stop immediately.");
}
