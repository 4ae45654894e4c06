//! Marks the steps in the use-cases and the queue.

use grabd_domain::ids::{GrabId, LeaseToken};

use super::Step;
#[cfg(debug_assertions)]
use super::armed::Action;
use crate::service::Core;

/// Marks that a step was reached, and runs the action of a failpoint armed for it. `lease` is the lease it may lose.
///
/// # Errors
/// [`grabd_store::Error::Closed`] when an armed failpoint injects it.
#[cfg(debug_assertions)]
pub(crate) async fn reach(core: &Core, step: Step, lease: Option<(GrabId, LeaseToken)>) -> grabd_store::Result<()> {
    let Some(failpoint) = core.failpoints.fire(step, lease.map(|(grab, _)| grab)) else { return Ok(()) };
    tracing::warn!(step = ?failpoint.step, action = ?failpoint.action, "a failpoint fires");
    match (failpoint.action, lease) {
        (Action::Abort, _) => std::process::abort(),
        (Action::Error, _) => Err(grabd_store::Error::Closed),
        (Action::Lose, Some((grab, token))) => {
            core.store.grabs().release(grab, token, core.clock.now()).await.map(drop)
        }
        (Action::Lose, None) => Ok(()),
        (Action::Sleep(length), _) => {
            // The hang requested by the test.
            tokio::time::sleep(length).await;
            Ok(())
        }
    }
}

/// Does nothing in release builds.
#[cfg(not(debug_assertions))]
pub(crate) async fn reach(_: &Core, _: Step, _: Option<(GrabId, LeaseToken)>) -> grabd_store::Result<()> {
    Ok(())
}

/// Whether the queue and the watched grabs are polled. Tests of hints end that.
#[cfg(debug_assertions)]
pub(crate) fn polls(core: &Core) -> bool {
    !core.failpoints.without_polls
}

/// Always, in release builds.
#[cfg(not(debug_assertions))]
pub(crate) fn polls(_: &Core) -> bool {
    true
}
