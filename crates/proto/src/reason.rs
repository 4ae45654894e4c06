//! Carries REST error codes as the `reason` of a `google.rpc.ErrorInfo`.

use tonic::Status;
use tonic_types::StatusExt;

use crate::v1::{ErrorCause, ErrorCode};

/// The `domain` of every `ErrorInfo` of this service.
pub const DOMAIN: &str = "grabd";

/// Response header of HTTP errors: the [`ErrorCause`].
pub const ERROR_CAUSE: &str = "error-cause";
/// Key of the [`ErrorCause`] in the metadata of an `ErrorInfo`.
pub const CAUSE: &str = "cause";

/// Key of the OAuth scope that a forbidden call needs, in the metadata of an `ErrorInfo`.
pub const OAUTH_SCOPE: &str = "oauth_scope";

/// Metadata key of the caller's rate limit state (draft-ietf-httpapi-ratelimit-headers).
pub const RATE_LIMIT: &str = "ratelimit";
/// Metadata key of the rate limit policy (draft-ietf-httpapi-ratelimit-headers).
pub const RATE_LIMIT_POLICY: &str = "ratelimit-policy";
/// Metadata key of the request id, in requests and responses.
pub const REQUEST_ID: &str = "x-request-id";
/// Metadata key of the trace context (W3C Trace Context).
pub const TRACEPARENT: &str = "traceparent";

/// The `reason` of an error code: its name without the enum prefix.
pub fn of(code: ErrorCode) -> &'static str {
    code.as_str_name().trim_start_matches("ERROR_CODE_")
}

/// The error code of an RPC error. Errors without a known reason map to `InternalError`.
pub fn code(status: &Status) -> ErrorCode {
    status
        .get_details_error_info()
        .filter(|info| info.domain == DOMAIN)
        .and_then(|info| ErrorCode::from_str_name(&format!("ERROR_CODE_{}", info.reason)))
        .filter(|code| *code != ErrorCode::Unspecified)
        .unwrap_or(ErrorCode::InternalError)
}

/// The name of an error code in JSON.
pub fn name(code: ErrorCode) -> String {
    let known = if code == ErrorCode::Unspecified { ErrorCode::InternalError } else { code };
    of(known).to_ascii_lowercase()
}

/// The HTTP status of an error code.
pub const fn http_status(code: ErrorCode) -> u16 {
    match code {
        ErrorCode::Unauthorized => 401,
        ErrorCode::BadRequest
        | ErrorCode::InvalidViewport
        | ErrorCode::SsrfDetected
        | ErrorCode::IdempotencyMismatch => 400,
        ErrorCode::CreditsExhausted => 402,
        ErrorCode::Forbidden => 403,
        ErrorCode::NotFound => 404,
        ErrorCode::IdempotencyConflict => 409,
        ErrorCode::RenderBlocked => 422,
        ErrorCode::RateLimitExceeded | ErrorCode::QueueLimitExceeded => 429,
        ErrorCode::RenderFailed | ErrorCode::InternalError | ErrorCode::Unspecified => 500,
    }
}

/// The name of a cause in JSON and in the metadata of an `ErrorInfo`. `None` for `Unspecified`.
pub const fn cause_name(cause: ErrorCause) -> Option<&'static str> {
    match cause {
        ErrorCause::Unspecified => None,
        ErrorCause::Request => Some("request"),
        ErrorCause::Target => Some("target"),
        ErrorCause::Service => Some("service"),
    }
}

/// The usual cause of an error code, for errors that say nothing else.
pub const fn usual_cause(code: ErrorCode) -> ErrorCause {
    match code {
        ErrorCode::Unauthorized
        | ErrorCode::BadRequest
        | ErrorCode::InvalidViewport
        | ErrorCode::SsrfDetected
        | ErrorCode::IdempotencyMismatch
        | ErrorCode::CreditsExhausted
        | ErrorCode::NotFound
        | ErrorCode::IdempotencyConflict
        | ErrorCode::RateLimitExceeded
        | ErrorCode::QueueLimitExceeded
        | ErrorCode::Forbidden => ErrorCause::Request,
        ErrorCode::RenderBlocked | ErrorCode::RenderFailed => ErrorCause::Target,
        ErrorCode::InternalError | ErrorCode::Unspecified => ErrorCause::Service,
    }
}

/// The cause of an RPC error: that in its details, or the usual one of its code.
pub fn cause(status: &Status) -> ErrorCause {
    let known = [ErrorCause::Request, ErrorCause::Target, ErrorCause::Service];
    status
        .get_details_error_info()
        .filter(|info| info.domain == DOMAIN)
        .and_then(|info| {
            known.into_iter().find(|cause| cause_name(*cause) == info.metadata.get(CAUSE).map(String::as_str))
        })
        .unwrap_or_else(|| usual_cause(code(status)))
}

/// The OAuth scope that a forbidden call needs.
pub fn oauth_scope(status: &Status) -> Option<String> {
    let info = status.get_details_error_info().filter(|info| info.domain == DOMAIN)?;
    info.metadata.get(OAUTH_SCOPE).cloned()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use tonic::Code;
    use tonic_types::ErrorDetails;

    use super::*;

    fn status_with(reason: &str, domain: &str) -> Status {
        let details = ErrorDetails::with_error_info(reason, domain, HashMap::new());
        Status::with_error_details(Code::Unknown, "x", details)
    }

    #[test]
    fn error_codes_round_trip_through_status_details() {
        for number in 1..=14 {
            let expected = ErrorCode::try_from(number).unwrap();
            assert_eq!(code(&status_with(of(expected), DOMAIN)), expected);
        }
        assert_eq!(of(ErrorCode::SsrfDetected), "SSRF_DETECTED");
    }

    #[test]
    fn cause_is_read_from_the_details_or_from_the_code() {
        let with_cause = |cause: &str, domain| {
            let metadata = HashMap::from([(CAUSE.to_owned(), cause.to_owned())]);
            let details = ErrorDetails::with_error_info("RATE_LIMIT_EXCEEDED", domain, metadata);
            Status::with_error_details(Code::ResourceExhausted, "x", details)
        };
        for (status, expected) in [
            (with_cause("service", DOMAIN), ErrorCause::Service),
            (with_cause("target", DOMAIN), ErrorCause::Target),
            (with_cause("request", DOMAIN), ErrorCause::Request),
            (with_cause("weather", DOMAIN), ErrorCause::Request),
            (with_cause("target", "other"), ErrorCause::Service),
            (status_with("RATE_LIMIT_EXCEEDED", DOMAIN), ErrorCause::Request),
            (status_with("RENDER_FAILED", DOMAIN), ErrorCause::Target),
            (Status::internal("x"), ErrorCause::Service),
        ] {
            assert_eq!(cause(&status), expected, "{status:?}");
        }
    }

    #[test]
    fn unknown_reasons_map_to_internal_error() {
        for status in [
            status_with("SSRF_DETECTED", "other"),
            status_with("TEAPOT", DOMAIN),
            status_with("UNSPECIFIED", DOMAIN),
            Status::internal("x"),
        ] {
            assert_eq!(code(&status), ErrorCode::InternalError);
        }
    }
}
