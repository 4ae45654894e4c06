//! Runs the service: everything is started, shown, and at the end drained in the order that loses nothing.

mod banner;
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
pub use first_run::Keys;
pub use listener::Patience;
pub use service::Service;

/// From the first signal to the end, whatever hangs. The steps of a drain have limits of their own, which may add up to more
/// than whoever supervises this process waits before it kills.
const GRACE: Duration = Duration::from_secs(45);

/// Serves until a signal or until the browser is beyond help. `launcher` is as in [`Service::start`].
///
/// # Errors
/// What keeps the service from starting, or ended it.
pub async fn run(config: Config, launcher: Option<&Path>, capture: Option<&str>) -> anyhow::Result<()> {
    let service = Service::start(&config, launcher).await?;
    // Before anybody reads that it is up, and may tell it to stop.
    let mut signals = Signals::listen()?;
    let keys = first_run::keys(&config, service.store()).await?;
    let has_people = service.store().has_people().await.context("the people cannot be read")?;
    banner::show(&config, &service, &keys, has_people);
    let serving = async {
        if let Some(url) = capture {
            banner::capture(&config, &service, &keys, url).await?;
        }
        Ok::<_, anyhow::Error>(service.failed().await)
    };
    let failure = tokio::select! {
        () = signals.told_to_stop() => None,
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

/// SIGTERM and Ctrl-C, kept from when this was made until somebody asks.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn listen() -> anyhow::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate()).context("SIGTERM cannot be listened for")?,
            interrupt: signal(SignalKind::interrupt()).context("SIGINT cannot be listened for")?,
        })
    }

    async fn told_to_stop(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Drains; a second signal, or the end of the grace, leaves at once with nothing but the browser tidied up.
async fn drain(service: Service, signals: &mut Signals) -> anyhow::Result<()> {
    let browser = service.browser().clone();
    let hurried = tokio::select! {
        () = service.drain() => return Ok(()),
        () = signals.told_to_stop() => "told twice",
        () = tokio::time::sleep(GRACE) => "the grace is over",
    };
    tracing::warn!(why = hurried, "leaving at once; unfinished grabs are taken up at the next start");
    browser.shutdown().await;
    Ok(())
}
