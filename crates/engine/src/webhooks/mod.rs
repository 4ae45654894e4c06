//! Webhooks: signed messages about asynchronous live grabs that have ended.
//!
//! `endpoints` and `deliveries` are the use-cases of callers. `sender` sends the messages: `due` reads which are due, `line`
//! decides whose turn it is, `message` composes one, `sign` signs it with the endpoint's `secret`, and `post` makes one
//! attempt through the guard.

mod deliveries;
mod due;
mod endpoints;
mod line;
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
pub use deliveries::{
    DELIVERY_FIELD, DeliveriesRequest, await_delivery, get_delivery, list_deliveries, redeliver, send_test,
};
pub use endpoints::{
    app_names, change, get, keep, list, register, remove, rotate_secret, rotate_secret_as_operator,
    teams_with_unknown_endpoints,
};
pub use grabd_store::webhooks::{Deliveries, Message};
pub(crate) use message::{low_balance_message, monitor_message, site_message};
pub use secret::Secret;

/// Capacity of the channel of recorded attempts.
const CHANNEL_CAPACITY: usize = 64;

/// State shared by the use-cases and the sender.
pub struct Webhooks {
    allow_http: bool,
    /// Notified when a delivery is due. Notifications may be lost, since the sender also polls.
    wakeup: Notify,
    /// Deliveries whose attempt was just recorded. Messages may be lost.
    recorded: broadcast::Sender<DeliveryId>,
}

impl Webhooks {
    /// Creates the state. `allow_http` allows endpoints without TLS, for development.
    pub fn new(allow_http: bool) -> Self {
        Self { allow_http, wakeup: Notify::new(), recorded: broadcast::Sender::new(CHANNEL_CAPACITY) }
    }

    /// Whether requests to URLs of callers may be sent without TLS.
    pub(crate) const fn allow_http(&self) -> bool {
        self.allow_http
    }

    /// Notifies the sender that a delivery is due.
    pub(crate) fn notify(&self) {
        self.wakeup.notify_one();
    }

    /// Announces that an attempt was recorded.
    fn announce_recorded(&self, delivery: DeliveryId) {
        // Fails without receivers, which is the usual case.
        drop(self.recorded.send(delivery));
    }
}

impl fmt::Debug for Webhooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhooks").field("allow_http", &self.allow_http).finish_non_exhaustive()
    }
}

/// Whether the vault can decrypt the newest stored secret. `true` when none is stored.
///
/// # Errors
/// When the database cannot be read.
pub async fn can_decrypt_secrets(vault: &Vault, store: &Store) -> Result<bool, grabd_store::Error> {
    let newest = store.webhooks().newest_secret().await?;
    Ok(newest.is_none_or(|(endpoint, sealed)| Secret::unseal(vault, &sealed, endpoint).is_ok()))
}
