//! A team's webhooks: one file per page, or per form without a page of its own. `fields` has the form fields, and
//! `view` prepares webhooks and deliveries for display.

pub(crate) mod change;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod delivery;
mod fields;
pub(crate) mod keep;
pub(crate) mod list;
pub(crate) mod secret;
pub(crate) mod send;
pub(crate) mod show;
pub(crate) mod switch;
mod view;

use grabd_domain::Fault;
use grabd_domain::credentials::Caller;
use grabd_domain::ids::{DeliveryId, EndpointId};
use grabd_domain::webhooks::{Endpoint, MAX_SENDS};
use grabd_engine::{Error, webhooks};

use crate::environments::ENVIRONMENTS;
use crate::page::Layout;
use crate::problem::Problem;
use crate::state::Web;
use crate::team::TeamContext;

/// The list.
pub(crate) const LIST: &str = "/teams/{team}/webhooks";
/// The form for a new webhook.
pub(crate) const NEW: &str = "/teams/{team}/webhooks/new";
/// One webhook with its deliveries.
pub(crate) const ONE: &str = "/teams/{team}/webhooks/{webhook}";
/// Changes a webhook.
pub(crate) const CHANGE: &str = "/teams/{team}/webhooks/{webhook}/change";
/// Rotates the secret.
pub(crate) const SECRET: &str = "/teams/{team}/webhooks/{webhook}/secret";
/// Disables a webhook.
pub(crate) const OFF: &str = "/teams/{team}/webhooks/{webhook}/off";
/// Enables a webhook.
pub(crate) const ON: &str = "/teams/{team}/webhooks/{webhook}/on";
/// Deletes a webhook.
pub(crate) const DELETE: &str = "/teams/{team}/webhooks/{webhook}/delete";
/// Keeps a webhook whose creator was not recorded.
pub(crate) const KEEP: &str = "/teams/{team}/webhooks/{webhook}/keep";
/// Sends a test message.
pub(crate) const TEST: &str = "/teams/{team}/webhooks/{webhook}/test";
/// One delivery.
pub(crate) const DELIVERY: &str = "/teams/{team}/webhooks/{webhook}/deliveries/{delivery}";
/// Repeats a delivery.
pub(crate) const AGAIN: &str = "/teams/{team}/webhooks/{webhook}/deliveries/{delivery}/again";

/// The path segment of these pages, for the navigation.
const PAGE: &str = "webhooks";

impl TeamContext {
    /// The path of a webhook's page, or of the page `page` below it.
    fn webhook_path(&self, webhook: EndpointId, page: &str) -> String {
        let slash = if page.is_empty() { "" } else { "/" };
        self.path(&format!("{PAGE}/{webhook}{slash}{page}"))
    }

    /// The path of a delivery's page.
    fn delivery_path(&self, webhook: EndpointId, delivery: DeliveryId) -> String {
        self.webhook_path(webhook, &format!("deliveries/{delivery}"))
    }

    /// Finds the team's webhook in either environment, and the caller for that environment. Counts against its rate
    /// limit.
    ///
    /// # Errors
    /// When the team has no such webhook, or has reached its rate limit.
    async fn find_webhook_counted(&self, web: &Web, id: &str) -> Result<(Endpoint, Caller), Problem> {
        let unknown = || Problem::not_found("This team has no such webhook.");
        let id: EndpointId = id.parse().map_err(|_| unknown())?;
        for environment in ENVIRONMENTS {
            let found = webhooks::get(&web.core, self.team_member.uncounted_caller(environment), id).await;
            match found.map_err(Error::into_fault) {
                Ok(webhook) => return Ok((webhook, self.team_member.admit(&web.core, environment).await?)),
                Err(Fault::NotFound { .. }) => {}
                Err(fault) => return Err(fault.into()),
            }
        }
        Err(unknown())
    }
}

impl Web {
    fn webhook_layout(&self, at: &TeamContext) -> Layout {
        self.team_layout(at, PAGE)
    }
}

/// The delivery that a path names.
fn delivery_id(text: &str) -> Result<DeliveryId, Problem> {
    text.parse().map_err(|_| no_delivery())
}

/// The delivery does not exist, or was deleted after 30 days.
fn no_delivery() -> Problem {
    Problem::not_found("This delivery does not exist. Deliveries are listed for 30 days.")
}

/// The message was sent the maximum number of times.
fn sent_too_often() -> Problem {
    let message = format!("A message is sent at most {MAX_SENDS} times.");
    Problem::conflict("This message was sent too often", message, "Copy its body from the page of the delivery.")
}

/// The webhook is disabled.
fn is_off() -> Problem {
    Problem::conflict("This webhook is disabled", "No messages are sent to it.", "Enable it first.")
}
