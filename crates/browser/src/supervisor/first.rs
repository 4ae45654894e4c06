//! The first browser shows whether browsers can be jailed here.

use std::sync::Arc;

use super::browser::Browser;
use super::shared::Setup;
use super::start::{Attempts, StartError};
use crate::Options;
use crate::jail::{Jail, Launcher, NetworkJail};

/// Starts the first browser as `options` want it, and says how all others will be started: with the launcher that is
/// then in `setup`, or without one.
pub(super) async fn start(setup: &mut Setup, options: &Options) -> Result<(Arc<Browser>, Jail), StartError> {
    let must = match options.network_jail {
        NetworkJail::Off => return Ok((unjailed(setup, options).await?, Jail::Unwanted)),
        NetworkJail::Auto => false,
        NetworkJail::Required => true,
    };
    let why = match jailed(setup, options).await {
        Ok(browser) => return Ok((browser, Jail::Jailed)),
        Err(error) if must => return Err(error),
        Err(StartError::Jail(why)) => why,
        // It may be for the jail that it does not start.
        Err(error @ StartError::Browser { .. }) => error.to_string(),
        Err(
            error @ (StartError::NoExecutable
            | StartError::NoUser(_)
            | StartError::RunDir { .. }
            | StartError::Barred(_)
            | StartError::Proxy(_)),
        ) => return Err(error),
    };
    let browser = unjailed(setup, options).await?;
    tracing::warn!(why, "browsers run without a network jail. {}", Jail::REMEDY);
    Ok((browser, Jail::Impossible { why }))
}

async fn jailed(setup: &mut Setup, options: &Options) -> Result<Arc<Browser>, StartError> {
    let Some(launcher) = &options.launcher else {
        return Err(StartError::Jail("this program has no launcher for browsers".into()));
    };
    let opened = Launcher::open(launcher);
    setup.launcher = Some(opened.map_err(|error| StartError::Jail(format!("the launcher cannot be opened: {error}")))?);
    repeatedly(setup, options).await
}

async fn unjailed(setup: &mut Setup, options: &Options) -> Result<Arc<Browser>, StartError> {
    setup.launcher = None;
    repeatedly(setup, options).await
}

async fn repeatedly(setup: &Setup, options: &Options) -> Result<Arc<Browser>, StartError> {
    let mut attempts = Attempts::default();
    loop {
        match Browser::start(setup, options.spare_contexts, setup.grabs_of_a_life).await {
            Ok(browser) => return Ok(browser),
            // What the kernel forbids stays forbidden. Anything else may pass, and a jail is worth the wait.
            Err(error @ StartError::Jail(_)) => return Err(error),
            Err(error) if !attempts.go_on_after(&error).await => return Err(error),
            Err(_) => {}
        }
    }
}
