//! Webhooks: signed messages about asynchronous live grabs that have ended.
//!
//! `endpoints` and `deliveries` are what callers do; `sender` carries the messages out: `message` composes one, `sign`
//! signs it with the endpoint's `secret`, and `post` makes one attempt through the guard.

mod deliveries;
mod endpoints;
mod message;
mod post;
mod secret;
pub(crate) mod sender;
mod sign;

use std::fmt;

use grabd_domain::ids::DeliveryId;
use grabd_store::Store;
use tokio::sync::{Notify, broadcast};

use crate::vault::Vault;
pub use deliveries::{DeliveriesRequest, await_delivery, get_delivery, list_deliveries, redeliver, send_test};
pub use endpoints::{change, get, list, register, remove, rotate_secret};
pub use grabd_store::{Deliveries, Message};
pub use secret::Secret;

/// News of attempts that a listener may be behind by.
const NEWS: usize = 64;

/// What the use-cases and the sender share.
pub struct Webhooks {
    vault: Vault,
    allow_http: bool,
    /// Rung when something is due; may be lost, since the sender looks by itself too.
    bell: Notify,
    /// Tells which delivery has just had an attempt recorded; a hint as well.
    settled: broadcast::Sender<DeliveryId>,
}

impl Webhooks {
    /// With secrets in this vault. Messages may go over plain http only where that is allowed, for development.
    pub fn new(vault: Vault, allow_http: bool) -> Self {
        Self { vault, allow_http, bell: Notify::new(), settled: broadcast::Sender::new(NEWS) }
    }

    /// Do the secrets that are stored open with this vault's key? With none stored, nothing speaks against it.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn secrets_open(&self, store: &Store) -> Result<bool, grabd_store::Error> {
        let newest = store.newest_secret().await?;
        Ok(newest.is_none_or(|(endpoint, sealed)| Secret::unseal(&self.vault, &sealed, endpoint).is_ok()))
    }

    /// Something is due.
    pub(crate) fn ring(&self) {
        self.bell.notify_one();
    }

    /// An attempt has ended, and its end is recorded.
    fn tell(&self, delivery: DeliveryId) {
        // Mostly, nobody listens.
        drop(self.settled.send(delivery));
    }
}

impl fmt::Debug for Webhooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhooks").field("allow_http", &self.allow_http).finish_non_exhaustive()
    }
}
