//! `POST /v1/billing/stripe`: receives Stripe's payment events. Served only if credits are sold.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use grabd_domain::Fault;
use grabd_edge::{allow_methods, error_response};
use grabd_engine::billing::can_buy;
use grabd_engine::billing::stripe::{self, MAX_EVENT_BYTES};
use grabd_engine::{Core, Error};
use grabd_proto::v1::ErrorCode;

const PATH: &str = "/v1/billing/stripe";
/// Time limit for receiving the body.
const DEADLINE: Duration = Duration::from_secs(10);

// Stripe shows these texts to the operator, next to the event.
const INCOMPLETE: &str = "The event has more than 65536 bytes, broke off, or took more than 10 seconds.";
const UNSIGNED: &str = "The event was not signed within the last 5 minutes with a secret that is configured here. Compare \
                        billing.stripe_webhook_secret with the signing secret of the endpoint, and this machine's clock.";
const UNREADABLE: &str = "The event cannot be read. Is its API version one that is understood here?";
const FAILED: &str = "The event could not be carried out, and nothing was changed. It has to be sent again.";

/// Empty if no credits are sold.
pub(super) fn router(core: Core) -> Router {
    match can_buy(&core) {
        true => Router::new().route(PATH, allow_methods("POST, OPTIONS", post(receive))).with_state(core),
        false => Router::new(),
    }
}

async fn receive(State(core): State<Core>, headers: HeaderMap, body: Body) -> Response {
    let mut lines = headers.get_all(stripe::SIGNATURE_HEADER).iter();
    let signature = match (lines.next(), lines.next()) {
        (Some(line), None) => line.to_str().ok(),
        (_, _) => None,
    };
    // The signature covers the raw bytes. Without one, they are not from Stripe and not received.
    let body = if signature.is_some() { body } else { Body::empty() };
    let read = tokio::time::timeout(DEADLINE, axum::body::to_bytes(body, MAX_EVENT_BYTES));
    let Ok(Ok(body)) = read.await else {
        return error_response(ErrorCode::BadRequest, INCOMPLETE);
    };
    match stripe::receive(&core, signature, &body).await.map_err(Error::into_fault) {
        Ok(outcome) => (StatusCode::OK, outcome.as_str()).into_response(),
        Err(Fault::BadRequest(field)) if field.name == stripe::SIGNATURE_HEADER => {
            error_response(ErrorCode::BadRequest, UNSIGNED)
        }
        Err(Fault::BadRequest(_)) => error_response(ErrorCode::BadRequest, UNREADABLE),
        // Stripe retries.
        Err(_) => error_response(ErrorCode::InternalError, FAILED),
    }
}
