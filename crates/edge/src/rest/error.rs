//! The error envelope and the HTTP status of each error code.

use std::borrow::Cow;
use std::fmt::Display;
use std::time::Duration;

use axum::response::{IntoResponse, Response};
use grabd_api::{ErrorBody, ErrorMembers};
use grabd_limiters::{Window, whole_seconds};
use grabd_options::unknown;
use grabd_proto::v1::{BatchError, ErrorCause, ErrorCode, Grab};
use grabd_proto::{credential, reason};
use http::header::{LOCATION, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, StatusCode};
use tonic::Status;
use tonic_types::StatusExt;

use super::common_headers::ErrorAnchor;
use super::headers;
use super::rate_limit_headers;
use super::request_id::request_id;

/// Message of internal errors. The cause is only logged, with the request id.
pub(crate) const INTERNAL_MESSAGE: &str =
    "Something went wrong on our side. Retry, and quote the X-Request-Id if it persists.";

/// Challenge of a request whose token is invalid.
pub(super) const INVALID_TOKEN: &str = "Bearer error=\"invalid_token\"";
/// Challenge of a request without a token.
pub(super) const MISSING_TOKEN: &str = "Bearer";
/// Challenge of a request whose credential lacks a scope.
pub(super) const INSUFFICIENT_SCOPE: &str = "Bearer error=\"insufficient_scope\"";

/// An error response.
#[derive(Debug)]
pub(crate) struct ApiError {
    pub(crate) code: ErrorCode,
    pub(crate) message: Cow<'static, str>,
    /// Whose fault it is. Sent as a header.
    pub(crate) cause: ErrorCause,
    /// Additional response headers. Boxed to keep results that contain this error small.
    pub(crate) headers: Box<HeaderMap>,
}

impl ApiError {
    pub(crate) fn new(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into(), cause: reason::usual_cause(code), headers: Box::default() }
    }

    /// The same error with another cause, if one is known.
    pub(crate) fn caused_by(self, cause: ErrorCause) -> Self {
        match cause {
            ErrorCause::Unspecified => self,
            ErrorCause::Request | ErrorCause::Target | ErrorCause::Service => Self { cause, ..self },
        }
    }

    /// The same error; if the request or its capture caused it, the message also names the members that were ignored.
    pub(super) fn with_ignored(mut self, unknown: &[String]) -> Self {
        let is_of_capture = matches!(
            self.code,
            ErrorCode::BadRequest | ErrorCode::InvalidViewport | ErrorCode::RenderBlocked | ErrorCode::RenderFailed
        );
        if is_of_capture && !unknown.is_empty() {
            let names = unknown.iter().map(|name| unknown::described(name)).collect::<Vec<_>>().join(", ");
            self.message = format!("{} Ignored, since no such option exists: {names}.", self.message).into();
        }
        self
    }

    /// The object that describes the error.
    pub(crate) fn body(&self) -> ErrorMembers<'_> {
        ErrorMembers { code: status_and_code(self.code).1.into(), message: (&*self.message).into() }
    }

    /// The name of the cause.
    pub(crate) fn cause_name(&self) -> &'static str {
        // `Unspecified` has none, and is never set.
        reason::cause_name(self.cause).unwrap_or("service")
    }

    /// An internal error. Logs the cause, which is not sent to the caller.
    pub(crate) fn internal(cause: impl Display, request_id: &HeaderValue) -> Self {
        let request_id = request_id.to_str().unwrap_or_default();
        tracing::error!(request.id = request_id, "A request failed: {cause}.");
        Self::new(ErrorCode::InternalError, INTERNAL_MESSAGE)
    }

    /// The error for a gRPC status. `request` has the headers of the HTTP request.
    pub(crate) fn from_status(status: &Status, request: &HeaderMap) -> Self {
        let code = reason::code(status);
        let delay = status.get_details_retry_info().and_then(|info| info.retry_delay);
        // An internal error that says when to try again is an outage, which the caller may know of.
        let mut failure = if code == ErrorCode::InternalError && delay.is_none() {
            let cause = format_args!("the core returned {:?}: {}", status.code(), status.message());
            Self::internal(cause, request_id(request))
        } else {
            Self::new(code, status.message().to_owned()).caused_by(reason::cause(status))
        };
        let metadata = status.metadata().as_ref();
        rate_limit_headers::copy(metadata, &mut failure.headers);
        if let Some(seconds) = retry_after_s(delay, status_and_code(code).0, metadata) {
            failure.headers.insert(RETRY_AFTER, seconds.into());
        }
        if code == ErrorCode::Unauthorized {
            let challenge = match credential::bearer(request) {
                Some(_) => INVALID_TOKEN,
                None => MISSING_TOKEN,
            };
            failure.headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
        }
        if code == ErrorCode::Forbidden {
            failure.headers.insert(WWW_AUTHENTICATE, insufficient_scope(status));
        }
        failure
    }

    /// The error of one capture of a batch. `metadata` has the state of the caller's limits.
    pub(super) fn from_batch(refused: BatchError, metadata: &HeaderMap) -> Self {
        let (code, cause) = (refused.code(), refused.cause());
        let mut failure = Self::new(code, refused.message).caused_by(cause);
        let delay = refused.retry_after.and_then(|delay| Duration::try_from(delay).ok());
        if let Some(seconds) = retry_after_s(delay, status_and_code(code).0, metadata) {
            failure.headers.insert(RETRY_AFTER, seconds.into());
        }
        failure
    }

    /// The error for an address whose quota is used up.
    pub(crate) fn rate_limit_exceeded(window: &Window) -> Self {
        let Window { limit, reset_s, of_end_site, .. } = *window;
        let whose = if of_end_site { " from all addresses of your network" } else { "" };
        let message = format!("Request rate limit exceeded: {limit} requests per minute{whose}. Retry in {reset_s} s.");
        let mut failure = Self::new(ErrorCode::RateLimitExceeded, message);
        rate_limit_headers::write(window, &mut failure.headers);
        failure.headers.insert(RETRY_AFTER, reset_s.into());
        failure
    }

    /// The error for a failed capture. The message is stored with the grab and therefore the same on a replay.
    pub(crate) fn from_grab(grab: Grab, location: HeaderValue) -> Self {
        let (code, cause) = (grab.failure_reason(), grab.error_cause());
        let message = grab.error_message.map_or(Cow::Borrowed(INTERNAL_MESSAGE), Cow::Owned);
        let mut failure = Self::new(code, message).caused_by(cause);
        failure.headers.insert(LOCATION, location);
        failure
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let (status, code) = status_and_code(self.code);
        let cause = HeaderValue::from_static(self.cause_name());
        let mut response =
            headers::json_response(status, "no-store", &ErrorBody { error: self.body() }, &HeaderMap::new());
        response.headers_mut().extend(*self.headers);
        response.headers_mut().insert(headers::ERROR_CAUSE, cause);
        response.extensions_mut().insert(ErrorAnchor(code));
        response
    }
}

/// The challenge with the OAuth scope that the call needs (RFC 6750 section 3).
fn insufficient_scope(status: &Status) -> HeaderValue {
    let scope = reason::oauth_scope(status).map(|scope| format!("{INSUFFICIENT_SCOPE}, scope=\"{scope}\""));
    let challenge = scope.and_then(|challenge| HeaderValue::try_from(challenge).ok());
    challenge.unwrap_or_else(|| HeaderValue::from_static(INSUFFICIENT_SCOPE))
}

/// An error response, for routes outside of REST.
pub fn error_response(code: ErrorCode, message: &'static str) -> Response {
    ApiError::new(code, message).into_response()
}

/// HTTP status and name of each error code.
pub(crate) fn status_and_code(code: ErrorCode) -> (StatusCode, &'static str) {
    match code {
        ErrorCode::Unauthorized => (StatusCode::UNAUTHORIZED, "unauthorized"),
        ErrorCode::BadRequest => (StatusCode::BAD_REQUEST, "bad_request"),
        ErrorCode::InvalidViewport => (StatusCode::BAD_REQUEST, "invalid_viewport"),
        ErrorCode::SsrfDetected => (StatusCode::BAD_REQUEST, "ssrf_detected"),
        ErrorCode::IdempotencyMismatch => (StatusCode::BAD_REQUEST, "idempotency_mismatch"),
        ErrorCode::CreditsExhausted => (StatusCode::PAYMENT_REQUIRED, "credits_exhausted"),
        ErrorCode::Forbidden => (StatusCode::FORBIDDEN, "forbidden"),
        ErrorCode::NotFound => (StatusCode::NOT_FOUND, "not_found"),
        ErrorCode::IdempotencyConflict => (StatusCode::CONFLICT, "idempotency_conflict"),
        ErrorCode::RenderBlocked => (StatusCode::UNPROCESSABLE_ENTITY, "render_blocked"),
        ErrorCode::RateLimitExceeded => (StatusCode::TOO_MANY_REQUESTS, "rate_limit_exceeded"),
        ErrorCode::QueueLimitExceeded => (StatusCode::TOO_MANY_REQUESTS, "queue_limit_exceeded"),
        ErrorCode::RenderFailed => (StatusCode::INTERNAL_SERVER_ERROR, "render_failed"),
        ErrorCode::InternalError | ErrorCode::Unspecified => (StatusCode::INTERNAL_SERVER_ERROR, "internal_error"),
    }
}

/// Value of `Retry-After`: the delay that the core gives; for a 429, at least the time until the limit admits a
/// request.
fn retry_after_s(delay: Option<Duration>, http: StatusCode, metadata: &HeaderMap) -> Option<u64> {
    let delay_s = delay.map(whole_seconds);
    if http != StatusCode::TOO_MANY_REQUESTS {
        return delay_s;
    }
    let reset_s = rate_limit_headers::read(metadata).map(|window| window.reset_s);
    Some(delay_s.max(reset_s).unwrap_or_else(|| whole_seconds(Duration::ZERO)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_and_names_are_those_of_the_contract() {
        for number in 0..=14 {
            let code = ErrorCode::try_from(number).unwrap();
            let (status, name) = status_and_code(code);
            assert_eq!((status.as_u16(), name), (reason::http_status(code), &*reason::name(code)));
        }
    }

    #[test]
    fn ignored_members_are_named_where_they_may_be_the_cause() {
        let message = |code, unknown: &[&str]| {
            let unknown: Vec<String> = unknown.iter().map(|name| (*name).to_owned()).collect();
            ApiError::new(code, "No.").with_ignored(&unknown).message.into_owned()
        };
        let named = "No. Ignored, since no such option exists: foo, ulr (did you mean url?).";
        assert_eq!(message(ErrorCode::BadRequest, &["foo", "ulr"]), named);
        assert_eq!(message(ErrorCode::RenderFailed, &["foo", "ulr"]), named);
        assert_eq!(message(ErrorCode::BadRequest, &[]), "No.");
        assert_eq!(message(ErrorCode::Unauthorized, &["foo"]), "No.");
    }

    #[test]
    fn every_error_code_has_a_cause() {
        for number in 0..=14 {
            let error = ApiError::new(ErrorCode::try_from(number).unwrap(), "x");
            assert!(reason::cause_name(error.cause).is_some(), "{number}");
        }
    }

    #[test]
    fn error_code_names_are_the_grpc_reasons_in_lower_case() {
        for number in 1..=14 {
            let code = ErrorCode::try_from(number).unwrap();
            assert_eq!(status_and_code(code).1, reason::of(code).to_ascii_lowercase());
        }
        assert!(ErrorCode::try_from(15).is_err(), "a new code must also be added to the table in tests/rest/errors.rs");
    }
}
