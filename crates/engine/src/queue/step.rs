//! One step of periodic work.

use crate::service::Core;

/// Runs one step. Its error is logged and counted, and does not prevent the others.
pub(super) async fn step(core: &Core, name: &'static str, work: impl Future<Output = Result<(), grabd_store::Error>>) {
    if let Err(error) = work.await {
        core.metrics.sweep_failed(name);
        tracing::warn!(step = name, %error, cause = ?error, "a step of the sweep failed; trying again");
    }
}
