//! Starts the background loops. Each ends when the core stops.

use tokio::sync::mpsc;

use crate::core::Core;
use crate::mail::{self, MailMessage, Smtp};
use crate::queue::{lease_loop, sweep};
use crate::storage;
use crate::webhooks::sender;

/// Recovers jobs that an earlier process left leased, then starts the loops.
///
/// # Errors
/// When the store cannot be read.
pub(crate) async fn start(
    core: &Core,
    mailing: Option<(Smtp, mpsc::Receiver<MailMessage>)>,
) -> Result<(), grabd_store::Error> {
    storage::measure(core).await;
    sweep::recover_leases(core).await?;
    core.spawn(lease_loop::run(core.clone()));
    core.spawn(sweep::run(core.clone()));
    core.spawn(sender::run(core.clone()));
    core.spawn(storage::run(core.clone()));
    if let Some((smtp, queue)) = mailing {
        core.spawn(mail::run(core.clone(), smtp, queue));
    }
    Ok(())
}
