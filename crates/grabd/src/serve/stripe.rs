//! `POST /v1/billing/stripe`: what Stripe tells about payments. Served only where something is sold.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use grabd_domain::Fault;
use grabd_edge::{only, refuse};
use grabd_engine::Core;
use grabd_engine::billing::can_buy;
use grabd_engine::billing::stripe::{self, MAX_EVENT_BYTES};
use grabd_proto::v1::ErrorCode;

const PATH: &str = "/v1/billing/stripe";
/// How long a body may take to arrive.
const DEADLINE: Duration = Duration::from_secs(10);

// Stripe shows these to the operator, beside the event.
const TOO_MUCH: &str = "The event has more than 65536 bytes, broke off, or took more than 10 seconds.";
const UNSIGNED: &str = "The event was not signed within the last 5 minutes with a secret that is configured here. Compare \
                        billing.stripe_webhook_secret with the signing secret of the endpoint, and this machine's clock.";
const UNREADABLE: &str = "The event cannot be read. Is its API version one that is understood here?";
const UNDONE: &str = "The event could not be carried out, and nothing was changed. It has to be sent again.";

/// Nothing where nothing is sold.
pub(super) fn router(core: Core) -> Router {
    match can_buy(&core) {
        true => Router::new().route(PATH, only("POST, OPTIONS", post(receive))).with_state(core),
        false => Router::new(),
    }
}

async fn receive(State(core): State<Core>, headers: HeaderMap, body: Body) -> Response {
    // What was signed are the bytes as they came.
    let read = tokio::time::timeout(DEADLINE, axum::body::to_bytes(body, MAX_EVENT_BYTES));
    let Ok(Ok(body)) = read.await else {
        return refuse(ErrorCode::BadRequest, TOO_MUCH);
    };
    let mut lines = headers.get_all(stripe::SIGNATURE).iter();
    let signature = match (lines.next(), lines.next()) {
        (Some(line), None) => line.to_str().ok(),
        (_, _) => None,
    };
    match stripe::receive(&core, signature, &body).await {
        Ok(outcome) => (StatusCode::OK, outcome.as_str()).into_response(),
        Err(Fault::BadRequest(field)) if field.name == stripe::SIGNATURE => refuse(ErrorCode::BadRequest, UNSIGNED),
        Err(Fault::BadRequest(_)) => refuse(ErrorCode::BadRequest, UNREADABLE),
        // Stripe sends it again.
        Err(_) => refuse(ErrorCode::InternalError, UNDONE),
    }
}
