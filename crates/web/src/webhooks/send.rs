//! `/teams/{team}/webhooks/{webhook}/test`, and `…/deliveries/{delivery}/again`: both lead on to the page of what is sent.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_domain::Fault;
use grabd_domain::ids::EndpointId;
use grabd_domain::webhooks::Delivery;
use grabd_engine::webhooks;

use super::delivery::SENT;
use super::{delivery_id, is_off, no_delivery};
use crate::Web;
use crate::frame::{Client, see_other};
use crate::problem::Problem;
use crate::team::AtTeam;

/// Sends a test message.
pub(crate) async fn test(
    State(web): State<Arc<Web>>,
    client: Client,
    Path((team, webhook)): Path<(String, String)>,
    request: Request,
) -> Result<Response, Problem> {
    let (at, _) = web.sent_in_team(client, &team, request).await?;
    let (webhook, caller) = at.enter_webhook(&web, &webhook).await?;
    let due = webhooks::send_test(&web.core, caller, webhook.id).await;
    on_its_way(&at, webhook.id, due)
}

/// Sends a message once more.
pub(crate) async fn again(
    State(web): State<Arc<Web>>,
    client: Client,
    Path((team, webhook, delivery)): Path<(String, String, String)>,
    request: Request,
) -> Result<Response, Problem> {
    let (at, _) = web.sent_in_team(client, &team, request).await?;
    let (webhook, caller) = at.enter_webhook(&web, &webhook).await?;
    let due = webhooks::redeliver(&web.core, caller, webhook.id, delivery_id(&delivery)?).await;
    on_its_way(&at, webhook.id, due)
}

fn on_its_way(at: &AtTeam, webhook: EndpointId, due: Result<Delivery, Fault>) -> Result<Response, Problem> {
    match due {
        Ok(delivery) => Ok(see_other(&format!("{}?{SENT}", at.delivery_path(webhook, delivery.id)))),
        // It is about the state of the webhook: nothing else is asked for.
        Err(Fault::BadRequest(_)) => Err(is_off()),
        Err(Fault::NotFound { .. }) => Err(no_delivery()),
        Err(fault) => Err(fault.into()),
    }
}
