//! Runs the service: starts everything, prints the addresses, and drains without losing grabs.

mod banner;
mod cluster_tls;
mod download;
mod evidence_keys;
mod first_run;
mod grpc;
mod health;
mod http;
mod images;
mod limits_in_force;
mod listener;
mod metrics;
mod open_files;
mod pages;
mod protocol;
mod renderer;
mod renderer_listener;
mod service;
mod stripe;
mod well_known;

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use grabd_browser::Chromium;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::config::{Config, ProcessRole};
pub(crate) use cluster_tls::{CORE as CORE_NAME, RENDERER as RENDERER_NAME};
pub use listener::Timeouts;
pub use renderer::RendererProcess;
pub use service::{Rendering, Service};

/// Time from the first signal to the exit. The steps of a drain have their own limits, whose sum may exceed the time
/// that a supervisor waits before it kills the process.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(45);

/// Serves until a signal arrives or the browser cannot be restarted. `launcher` is as in [`Service::start`]. If there is
/// no team, a first one is created, and its keys are stored; they are printed only if `prints_keys`.
///
/// # Errors
/// The error that prevented the start or ended the service.
pub async fn run(
    config: Config,
    launcher: Option<&Path>,
    capture: Option<&str>,
    prints_keys: bool,
) -> anyhow::Result<()> {
    if config.role == ProcessRole::Renderer {
        anyhow::ensure!(capture.is_none(), "--capture needs the role all");
        return run_renderer(&config, launcher).await;
    }
    let service = Service::start(&config, launcher).await?;
    // Before the banner is printed, since a supervisor may then send a signal.
    let mut signals = Signals::listen()?;
    let team = first_run::first_team(&config, service.store()).await?;
    let has_users = service.store().accounts().has_users().await.context("the people cannot be read")?;
    banner::show(&config, &service, &team, prints_keys, has_users);
    let serving = async {
        if let Some(url) = capture {
            banner::capture(&config, &service, &team, url).await?;
        }
        Ok::<_, anyhow::Error>(service.failed().await)
    };
    let failure = tokio::select! {
        () = signals.recv() => None,
        failure = serving => Some(failure?),
    };
    banner::draining(&config, SHUTDOWN_GRACE);
    let browser = service.browser().cloned();
    finish(service.drain(), browser, &mut signals).await;
    banner::stopped(&config);
    match failure {
        Some(failure) => Err(failure),
        None => Ok(()),
    }
}

/// Renders for the cores until a signal arrives or the browser cannot be restarted.
async fn run_renderer(config: &Config, launcher: Option<&Path>) -> anyhow::Result<()> {
    let renderer = RendererProcess::start(config, launcher).await?;
    let mut signals = Signals::listen()?;
    banner::show_renderer(config, &renderer);
    let failure = tokio::select! {
        () = signals.recv() => None,
        failure = renderer.failed() => Some(failure),
    };
    banner::draining(config, SHUTDOWN_GRACE);
    let browser = renderer.browser().clone();
    finish(renderer.drain(), Some(browser), &mut signals).await;
    banner::stopped(config);
    failure.map_or(Ok(()), Err)
}

/// SIGTERM and Ctrl-C, which are queued from the creation of this value.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn listen() -> anyhow::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate()).context("the SIGTERM handler cannot be installed")?,
            interrupt: signal(SignalKind::interrupt()).context("the SIGINT handler cannot be installed")?,
        })
    }

    async fn recv(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Drains. A second signal or the end of the grace period exits immediately, after the browser is shut down.
async fn finish(drained: impl Future<Output = ()>, browser: Option<Chromium>, signals: &mut Signals) {
    let drained_or_signal = async {
        tokio::select! {
            () = drained => None,
            () = signals.recv() => Some("second signal"),
        }
    };
    let result = tokio::time::timeout(SHUTDOWN_GRACE, drained_or_signal).await;
    let Some(reason) = result.unwrap_or(Some("the grace period has ended")) else { return };
    tracing::warn!(why = reason, "stopping immediately; unfinished grabs continue at the next start");
    if let Some(browser) = browser {
        browser.shutdown().await;
    }
}
