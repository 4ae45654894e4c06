//! A team's webhooks: one file per page, or per form that has none of its own. `fields` is what is filled in, and `view`
//! says in people's words how a webhook stands, and what was sent to it.

pub(crate) mod change;
pub(crate) mod delete;
pub(crate) mod delivery;
mod fields;
pub(crate) mod list;
pub(crate) mod make;
pub(crate) mod secret;
pub(crate) mod send;
pub(crate) mod show;
pub(crate) mod switch;
mod view;

use axum::extract::Request;
use grabd_domain::Fault;
use grabd_domain::credentials::Caller;
use grabd_domain::ids::{DeliveryId, EndpointId};
use grabd_domain::webhooks::Endpoint;
use grabd_engine::webhooks;

use crate::Web;
use crate::forgery;
use crate::form::Form;
use crate::frame::Client;
use crate::grabs::ENVIRONMENTS;
use crate::page::Frame;
use crate::problem::Problem;
use crate::team::AtTeam;
use crate::teams;

/// The list.
pub(crate) const LIST: &str = "/teams/{team}/webhooks";
/// The form for another one.
pub(crate) const MAKE: &str = "/teams/{team}/webhooks/new";
/// One, with what was sent to it.
pub(crate) const ONE: &str = "/teams/{team}/webhooks/{webhook}";
/// What it is told, and where.
pub(crate) const CHANGE: &str = "/teams/{team}/webhooks/{webhook}/change";
/// A new secret.
pub(crate) const SECRET: &str = "/teams/{team}/webhooks/{webhook}/secret";
/// Whether to switch it off.
pub(crate) const OFF: &str = "/teams/{team}/webhooks/{webhook}/off";
/// Switches it on.
pub(crate) const ON: &str = "/teams/{team}/webhooks/{webhook}/on";
/// Whether to delete it.
pub(crate) const DELETE: &str = "/teams/{team}/webhooks/{webhook}/delete";
/// Sends a test message.
pub(crate) const TEST: &str = "/teams/{team}/webhooks/{webhook}/test";
/// One message that was sent to it.
pub(crate) const DELIVERY: &str = "/teams/{team}/webhooks/{webhook}/deliveries/{delivery}";
/// Sends that once more.
pub(crate) const AGAIN: &str = "/teams/{team}/webhooks/{webhook}/deliveries/{delivery}/again";

/// What the navigation calls the list and all below it.
const PAGE: &str = "webhooks";

impl AtTeam {
    /// The path of a webhook's page, or with `page` of one below it.
    fn webhook_path(&self, webhook: EndpointId, page: &str) -> String {
        let slash = if page.is_empty() { "" } else { "/" };
        self.path(&format!("{PAGE}/{webhook}{slash}{page}"))
    }

    /// The path of a delivery's page.
    fn delivery_path(&self, webhook: EndpointId, delivery: DeliveryId) -> String {
        self.webhook_path(webhook, &format!("deliveries/{delivery}"))
    }

    /// The team's webhook, in whichever environment it is, and the caller whom it belongs to, counted as a request there.
    ///
    /// # Errors
    /// When the team has no such webhook, or has asked too often.
    async fn enter_webhook(&self, web: &Web, id: &str) -> Result<(Endpoint, Caller), Problem> {
        let unknown = || Problem::not_found("There is no such webhook in this team.");
        let id: EndpointId = id.parse().map_err(|_| unknown())?;
        for environment in ENVIRONMENTS {
            match webhooks::get(&web.core, self.insider.watcher(environment), id).await {
                Ok(webhook) => return Ok((webhook, self.insider.enter(&web.core, environment)?)),
                Err(Fault::NotFound { .. }) => {}
                Err(fault) => return Err(fault.into()),
            }
        }
        Err(unknown())
    }
}

impl Web {
    /// A frame that shows these pages as about the team itself, as its keys are.
    fn webhook_frame(&self, at: &AtTeam) -> Frame {
        Frame { here: teams::PATH, ..self.team_frame(at, PAGE) }
    }

    /// The form that somebody in this team has sent from a page of ours.
    ///
    /// # Errors
    /// When it does not count: too many came, there is no form or no team of theirs, or it came from elsewhere.
    async fn sent_in_team(&self, client: Client, team: &str, request: Request) -> Result<(AtTeam, Form), Problem> {
        self.limits.pages.take(client.0)?;
        let (head, body) = request.into_parts();
        let sent = Form::read(&head.headers, body).await?;
        let Some(at) = self.at_team(&head.headers, team).await? else { return Err(Problem::signed_out()) };
        forgery::check(&head.headers, &sent, at.form_token())?;
        Ok((at, sent))
    }
}

/// The delivery that a path names.
fn delivery_id(text: &str) -> Result<DeliveryId, Problem> {
    text.parse().map_err(|_| no_delivery())
}

/// What is not there may have been: deliveries are forgotten after a month.
fn no_delivery() -> Problem {
    Problem::not_found("There is no such message. What was sent is listed for 30 days.")
}

/// Nothing is sent to a webhook that is off.
fn is_off() -> Problem {
    Problem::in_the_way("This webhook is switched off", "Nothing is sent to it.", "Switch it on first.")
}
