//! Sends one webhook request and reads the relevant part of the response.

use std::time::Duration;

use bytes::Bytes;
use grabd_domain::target::TargetUrl;
use grabd_domain::webhooks::{ATTEMPT_TIMEOUT, RESPONSE_BYTES};
use grabd_egress::Guard;
use http::header::{CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http::{HeaderValue, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use tokio::time::timeout;

use crate::outgoing::{OutgoingClient, RequestError};

const AGENT: &str = "grabd-webhooks/1.0";

/// Maximum time for reading the response body after the status.
const READ_LIMIT: Duration = Duration::from_secs(1);

/// A signed message.
#[derive(Debug)]
pub(crate) struct SignedMessage {
    /// The `webhook-id` header.
    pub(crate) id: String,
    /// The `webhook-timestamp` header.
    pub(crate) seconds: i64,
    /// The `webhook-signature` header.
    pub(crate) signature: String,
    /// The request body.
    pub(crate) body: String,
}

/// The response of the endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EndpointResponse {
    pub(crate) status: StatusCode,
    pub(crate) retry_after: Option<HeaderValue>,
}

/// Sends the message once.
///
/// # Errors
/// When no response was received.
pub(crate) async fn post(
    guard: &Guard,
    outgoing: &OutgoingClient,
    url: &TargetUrl,
    message: SignedMessage,
) -> Result<EndpointResponse, RequestError> {
    let request = Request::post("/")
        .header(CONTENT_TYPE, "application/json")
        .header(USER_AGENT, AGENT)
        .header("webhook-id", message.id)
        .header("webhook-timestamp", message.seconds)
        .header("webhook-signature", message.signature);
    let body = Full::new(Bytes::from(message.body));
    outgoing
        .send(guard, url, request, body, ATTEMPT_TIMEOUT, |head, body| async move {
            // Only the status matters. The body is read so that the endpoint can finish sending it.
            drop(timeout(READ_LIMIT, discard(body)).await);
            EndpointResponse { status: head.status, retry_after: head.headers.get(RETRY_AFTER).cloned() }
        })
        .await
}

async fn discard(mut body: Incoming) {
    let mut left = RESPONSE_BYTES;
    while left > 0 && !body.is_end_stream() {
        let Some(Ok(frame)) = body.frame().await else { return };
        left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
    }
}

#[cfg(test)]
#[path = "post_tests.rs"]
mod tests;
