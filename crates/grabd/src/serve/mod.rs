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
use tokio::signal::unix::{SignalKind, signal};

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
    let keys = first_run::keys(&config, service.store()).await?;
    let has_people = service.store().has_people().await.context("the people cannot be read")?;
    banner::show(&config, &service, &keys, has_people);
    if let Some(url) = capture {
        banner::capture(&config, &service, &keys, url).await?;
    }
    let failure = until_told_to_stop(&service).await?;
    banner::draining(GRACE);
    drain(service).await?;
    banner::stopped();
    match failure {
        Some(failure) => Err(failure),
        None => Ok(()),
    }
}

/// Returns on SIGTERM and Ctrl-C, or with the reason why this process should rather be started anew.
async fn until_told_to_stop(service: &Service) -> anyhow::Result<Option<anyhow::Error>> {
    let mut terminate = signal(SignalKind::terminate()).context("SIGTERM cannot be listened for")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("SIGINT cannot be listened for")?;
    Ok(tokio::select! {
        _ = terminate.recv() => None,
        _ = interrupt.recv() => None,
        failure = service.failed() => Some(failure),
    })
}

/// Drains; a second signal, or the end of the grace, leaves at once with nothing but the browser tidied up.
async fn drain(service: Service) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("SIGTERM cannot be listened for")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("SIGINT cannot be listened for")?;
    let browser = service.browser().clone();
    let hurried = tokio::select! {
        () = service.drain() => return Ok(()),
        _ = terminate.recv() => "told twice",
        _ = interrupt.recv() => "told twice",
        () = tokio::time::sleep(GRACE) => "the grace is over",
    };
    tracing::warn!(why = hurried, "leaving at once; unfinished grabs are taken up at the next start");
    browser.shutdown().await;
    Ok(())
}
