//! One attempt: one request, and as much of the answer as matters.

use std::time::Duration;

use bytes::Bytes;
use grabd_domain::target::TargetUrl;
use grabd_domain::webhooks::{ANSWER_BYTES, ATTEMPT_LIMIT};
use grabd_egress::Guard;
use http::header::{CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http::{HeaderValue, Request, StatusCode};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use tokio::time::timeout;

use crate::outgoing::{Outgoing, Unanswered};

const AGENT: &str = "grabd-webhooks/1.0";

/// How long an answer's body is listened to once its status is known.
const READ_LIMIT: Duration = Duration::from_secs(1);

/// What is sent.
#[derive(Debug)]
pub(crate) struct Envelope {
    /// `webhook-id`.
    pub(crate) id: String,
    /// `webhook-timestamp`.
    pub(crate) seconds: i64,
    /// `webhook-signature`.
    pub(crate) signature: String,
    /// The message.
    pub(crate) body: String,
}

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) retry_after: Option<HeaderValue>,
}

/// Makes one attempt.
///
/// # Errors
/// When no answer came.
pub(crate) async fn post(
    guard: &Guard,
    outgoing: &Outgoing,
    url: &TargetUrl,
    envelope: Envelope,
) -> Result<Answer, Unanswered> {
    let request = Request::post("/")
        .header(CONTENT_TYPE, "application/json")
        .header(USER_AGENT, AGENT)
        .header("webhook-id", envelope.id)
        .header("webhook-timestamp", envelope.seconds)
        .header("webhook-signature", envelope.signature);
    let body = Bytes::from(envelope.body);
    outgoing
        .ask(guard, url, request, body, ATTEMPT_LIMIT, |head, body| async move {
            // The status is the answer. Whatever else comes is taken for politeness, so that the other side can finish.
            drop(timeout(READ_LIMIT, discard(body)).await);
            Answer { status: head.status, retry_after: head.headers.get(RETRY_AFTER).cloned() }
        })
        .await
}

async fn discard(mut body: Incoming) {
    let mut left = ANSWER_BYTES;
    while left > 0 && !body.is_end_stream() {
        let Some(Ok(frame)) = body.frame().await else { return };
        left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
    }
}

#[cfg(test)]
#[path = "post_tests.rs"]
mod tests;
