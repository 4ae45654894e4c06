//! Runs the service: starts everything, prints the addresses, and drains without losing grabs.

mod banner;
mod download;
mod first_run;
mod grpc;
mod health;
mod http;
mod images;
mod listener;
mod metrics;
mod open_files;
mod pages;
mod protocol;
mod service;
mod stripe;
mod well_known;

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::config::Config;
pub use listener::Timeouts;
pub use service::{Rendering, Service};

/// Time from the first signal to the exit. The steps of a drain have their own limits, whose sum may exceed the time
/// that a supervisor waits before it kills the process.
const GRACE: Duration = Duration::from_secs(45);

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
    let service = Service::start(&config, launcher).await?;
    // Before the banner is printed, since a supervisor may then send a signal.
    let mut signals = Signals::listen()?;
    let team = first_run::first_team(&config, service.store()).await?;
    let has_people = service.store().has_people().await.context("the people cannot be read")?;
    banner::show(&config, &service, &team, prints_keys, has_people);
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
    banner::draining(GRACE);
    drain(service, &mut signals).await?;
    banner::stopped();
    match failure {
        Some(failure) => Err(failure),
        None => Ok(()),
    }
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
async fn drain(service: Service, signals: &mut Signals) -> anyhow::Result<()> {
    let browser = service.browser().cloned();
    let reason = tokio::select! {
        () = service.drain() => return Ok(()),
        () = signals.recv() => "second signal",
        () = tokio::time::sleep(GRACE) => "the grace period has ended",
    };
    tracing::warn!(why = reason, "stopping immediately; unfinished grabs continue at the next start");
    if let Some(browser) = browser {
        browser.shutdown().await;
    }
    Ok(())
}
