//! The error envelope: what of a failure its caller sees, and which HTTP status each code has.

use std::borrow::Cow;
use std::fmt::Display;
use std::time::Duration;

use axum::response::{IntoResponse, Response};
use grabd_proto::v1::{ErrorCode, Grab};
use grabd_proto::{credential, reason};
use http::header::{LOCATION, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde::Serialize;
use tonic::Status;
use tonic_types::StatusExt;

use super::manners::Code;
use super::{call, headers, limits};

/// Said instead of a cause, which is in the log under the request id.
pub(crate) const INTERNAL: &str = "Something went wrong on our side. Retry, and quote the X-Request-Id if it persists.";

/// An error on its way to the caller.
#[derive(Debug)]
pub(crate) struct Failure {
    /// Which row of the contract's table it is.
    pub(crate) code: ErrorCode,
    /// What its caller reads.
    pub(crate) message: Cow<'static, str>,
    /// Further headers of its answer. Boxed because results that carry a failure are moved around a lot.
    pub(crate) headers: Box<HeaderMap>,
}

impl Failure {
    /// With the sentence that its caller reads.
    pub(crate) fn new(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into(), headers: Box::default() }
    }

    /// Our own fault. Logs the cause, which has no other way out.
    pub(crate) fn internal(cause: impl Display, request_id: &HeaderValue) -> Self {
        let request_id = request_id.to_str().unwrap_or_default();
        tracing::error!(request.id = request_id, "A request failed: {cause}.");
        Self::new(ErrorCode::InternalError, INTERNAL)
    }

    /// What the core answered to the request with these headers.
    pub(crate) fn of_status(status: &Status, request: &HeaderMap) -> Self {
        let code = reason::code(status);
        let mut failure = if code == ErrorCode::InternalError {
            let cause = format_args!("the core answered {:?}: {}", status.code(), status.message());
            Self::internal(cause, call::request_id(request))
        } else {
            Self::new(code, status.message().to_owned())
        };
        let metadata = status.metadata().as_ref();
        limits::copy(metadata, &mut failure.headers);
        if let Some(seconds) = retry_after_s(status, row(code).0, metadata) {
            failure.headers.insert(RETRY_AFTER, seconds.into());
        }
        if code == ErrorCode::Unauthorized {
            let challenge = match credential::bearer(request) {
                Some(_) => "Bearer error=\"invalid_token\"",
                None => "Bearer",
            };
            failure.headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
        }
        failure
    }

    /// A capture that failed, and where to find it. Its message is part of the grab and therefore the same on a replay.
    pub(crate) fn of_grab(grab: Grab, location: HeaderValue) -> Self {
        let code = grab.failure_reason();
        let message = grab.error_message.map_or(Cow::Borrowed(INTERNAL), Cow::Owned);
        let mut failure = Self::new(code, message);
        failure.headers.insert(LOCATION, location);
        failure
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let Self { code, message, headers } = self;
        let (status, code) = row(code);
        let envelope = Envelope { error: Body { code, message: &message } };
        let mut response = headers::json(status, "no-store", &envelope, &HeaderMap::new());
        response.headers_mut().extend(*headers);
        response.extensions_mut().insert(Code(code));
        response
    }
}

/// An answer of that code, for routes beside this face.
pub fn refuse(code: ErrorCode, message: &'static str) -> Response {
    Failure::new(code, message).into_response()
}

#[derive(Serialize)]
struct Envelope<'a> {
    error: Body<'a>,
}

#[derive(Serialize)]
struct Body<'a> {
    code: &'static str,
    message: &'a str,
}

/// The contract's table of errors.
pub(crate) fn row(code: ErrorCode) -> (StatusCode, &'static str) {
    match code {
        ErrorCode::Unauthorized => (StatusCode::UNAUTHORIZED, "unauthorized"),
        ErrorCode::BadRequest => (StatusCode::BAD_REQUEST, "bad_request"),
        ErrorCode::InvalidViewport => (StatusCode::BAD_REQUEST, "invalid_viewport"),
        ErrorCode::SsrfDetected => (StatusCode::BAD_REQUEST, "ssrf_detected"),
        ErrorCode::IdempotencyMismatch => (StatusCode::BAD_REQUEST, "idempotency_mismatch"),
        ErrorCode::CreditsExhausted => (StatusCode::PAYMENT_REQUIRED, "credits_exhausted"),
        ErrorCode::NotFound => (StatusCode::NOT_FOUND, "not_found"),
        ErrorCode::IdempotencyConflict => (StatusCode::CONFLICT, "idempotency_conflict"),
        ErrorCode::RenderBlocked => (StatusCode::UNPROCESSABLE_ENTITY, "render_blocked"),
        ErrorCode::RateLimitExceeded => (StatusCode::TOO_MANY_REQUESTS, "rate_limit_exceeded"),
        ErrorCode::QueueLimitExceeded => (StatusCode::TOO_MANY_REQUESTS, "queue_limit_exceeded"),
        ErrorCode::RenderFailed => (StatusCode::INTERNAL_SERVER_ERROR, "render_failed"),
        ErrorCode::InternalError | ErrorCode::Unspecified => (StatusCode::INTERNAL_SERVER_ERROR, "internal_error"),
    }
}

/// When to come back: what the core says, and after a 429 never before the limit admits one more.
fn retry_after_s(status: &Status, http: StatusCode, metadata: &HeaderMap) -> Option<u64> {
    let told = status.get_details_retry_info().and_then(|info| info.retry_delay).map(limits::whole_seconds);
    if http != StatusCode::TOO_MANY_REQUESTS {
        return told;
    }
    let reset_s = limits::Window::read(metadata).map(|window| window.reset_s);
    Some(told.max(reset_s).unwrap_or_else(|| limits::whole_seconds(Duration::ZERO)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_the_reason_in_lower_case() {
        for number in 1..=13 {
            let code = ErrorCode::try_from(number).unwrap();
            assert_eq!(row(code).1, reason::of(code).to_ascii_lowercase());
        }
        assert!(ErrorCode::try_from(14).is_err(), "a code was added: the contract's table in tests/rest wants it too");
    }
}
