//! Starts the background loops of the core. Each loop ends when the core stops.

use tokio::sync::mpsc;

use crate::bus;
use crate::cluster::membership;
use crate::mail::{self, MailMessage, Smtp};
use crate::monitors::scheduler;
use crate::queue::{cleanup, hints, lease_loop, sweep};
use crate::requests;
use crate::service::Core;
use crate::sites::scheduler as sites;
use crate::storage;
use crate::webhooks::sender;

impl Core {
    /// Recovers jobs that an earlier process left leased, then starts the background loops. `mailing`: the transport
    /// of mail, and the queue of messages.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(crate) async fn start_workers(
        &self,
        mailing: Option<(Smtp, mpsc::Receiver<MailMessage>)>,
    ) -> Result<(), grabd_store::Error> {
        storage::measure(self).await;
        if self.has_queue() {
            sweep::recover_leases(self).await?;
            self.spawn(lease_loop::run(self.clone()));
            self.spawn(cleanup::run(self.clone()));
            self.spawn(sender::run(self.clone()));
            self.spawn(scheduler::run(self.clone()));
            self.spawn(sites::run(self.clone()));
        }
        if self.cluster.is_some() {
            self.spawn(membership::run(self.clone()));
            self.spawn(bus::run(self.bus.clone(), self.store.clone(), self.stop.clone()));
            self.spawn(hints::run(self.clone()));
        }
        self.spawn(sweep::run(self.clone()));
        self.spawn(storage::run(self.clone()));
        self.spawn(requests::run(self.clone()));
        if let Some((smtp, queue)) = mailing {
            self.spawn(mail::run(self.clone(), smtp, queue));
        }
        Ok(())
    }
}
