//! `/teams/{team}/webhooks/{webhook}/test` and `…/deliveries/{delivery}/again`: send a message and redirect to its
//! page.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use grabd_domain::Fault;
use grabd_domain::ids::EndpointId;
use grabd_domain::webhooks::Delivery;
use grabd_engine::{Error, webhooks};

use super::delivery::SENT;
use super::{delivery_id, is_off, no_delivery, sent_too_often};
use crate::extract::TeamForm;
use crate::problem::Problem;
use crate::response::see_other;
use crate::state::Web;
use crate::team::TeamContext;

/// Sends a test message.
pub(crate) async fn test(
    State(web): State<Arc<Web>>,
    Path((_, webhook)): Path<(String, String)>,
    TeamForm { at, .. }: TeamForm,
) -> Result<Response, Problem> {
    let (webhook, caller) = at.find_webhook_counted(&web, &webhook).await?;
    let delivery = webhooks::send_test(&web.core, caller, webhook.id).await;
    redirect(&at, webhook.id, delivery)
}

/// Repeats a delivery.
pub(crate) async fn again(
    State(web): State<Arc<Web>>,
    Path((_, webhook, delivery)): Path<(String, String, String)>,
    TeamForm { at, .. }: TeamForm,
) -> Result<Response, Problem> {
    let (webhook, caller) = at.find_webhook_counted(&web, &webhook).await?;
    let delivery = webhooks::redeliver(&web.core, caller, webhook.id, delivery_id(&delivery)?).await;
    redirect(&at, webhook.id, delivery)
}

fn redirect(at: &TeamContext, webhook: EndpointId, delivery: Result<Delivery, Error>) -> Result<Response, Problem> {
    match delivery.map_err(Error::into_fault) {
        Ok(delivery) => Ok(see_other(&format!("{}?{SENT}", at.delivery_path(webhook, delivery.id)))),
        Err(Fault::BadRequest(field)) if field.name == webhooks::DELIVERY_FIELD => Err(sent_too_often()),
        // The request has no other fields, so the error is about the state of the webhook.
        Err(Fault::BadRequest(_)) => Err(is_off()),
        Err(Fault::NotFound { .. }) => Err(no_delivery()),
        Err(fault) => Err(fault.into()),
    }
}
