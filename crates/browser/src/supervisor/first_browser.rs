//! Starts the first browser and finds out whether browsers can be jailed on this host.

use std::sync::Arc;

use super::browser::Browser;
use super::setup::Setup;
use super::start::{StartAttempts, StartError};
use crate::Options;
use crate::jail::{Jail, Launcher, NetworkJail};

/// Starts the first browser according to `options` and returns how all others will be started: with the launcher that
/// is in `setup` afterwards, or without one.
pub(super) async fn start(setup: &mut Setup, options: &Options) -> Result<(Arc<Browser>, Jail), StartError> {
    let is_required = match options.network_jail {
        NetworkJail::Off => return Ok((start_unjailed(setup, options).await?, Jail::Disabled)),
        NetworkJail::Auto => false,
        NetworkJail::Required => true,
    };
    let why = match start_jailed(setup, options).await {
        Ok(browser) => return Ok((browser, Jail::Jailed)),
        Err(error) if is_required => return Err(error),
        Err(StartError::Jail(why)) => why,
        // The jail may be the reason.
        Err(error @ StartError::Browser { .. }) => error.to_string(),
        Err(
            error @ (StartError::NoExecutable
            | StartError::NoUser(_)
            | StartError::RunDir { .. }
            | StartError::Barred(_)
            | StartError::Proxy(_)),
        ) => return Err(error),
    };
    let browser = start_unjailed(setup, options).await?;
    tracing::warn!(why, "browsers run without a network jail. {}", Jail::REMEDY);
    Ok((browser, Jail::Unavailable { why }))
}

async fn start_jailed(setup: &mut Setup, options: &Options) -> Result<Arc<Browser>, StartError> {
    let Some(launcher) = &options.launcher else {
        return Err(StartError::Jail("this program has no launcher for browsers".into()));
    };
    let opened = Launcher::open(launcher);
    setup.launcher = Some(opened.map_err(|error| StartError::Jail(format!("the launcher cannot be opened: {error}")))?);
    start_with_retries(setup, options).await
}

async fn start_unjailed(setup: &mut Setup, options: &Options) -> Result<Arc<Browser>, StartError> {
    setup.launcher = None;
    start_with_retries(setup, options).await
}

async fn start_with_retries(setup: &mut Setup, options: &Options) -> Result<Arc<Browser>, StartError> {
    let mut attempts = StartAttempts::default();
    loop {
        match Browser::start(setup, setup.frames, options.spare_contexts, setup.max_grabs).await {
            Ok(browser) => return Ok(browser),
            // Jail errors are permanent. Other errors may be temporary, and a jail is worth the wait.
            Err(error @ StartError::Jail(_)) => return Err(error),
            // A security policy may allow only the installed program to make a sandbox.
            Err(error) if setup.use_installed() => {
                tracing::warn!(%error, "a copy of the browser's program does not start; the installed program is used");
            }
            Err(error) if !attempts.retry_after(&error).await => return Err(error),
            Err(_) => {}
        }
    }
}
