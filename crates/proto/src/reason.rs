//! How an error's REST code travels: as the `reason` of a `google.rpc.ErrorInfo`.

use tonic::Status;
use tonic_types::StatusExt;

use crate::v1::ErrorCode;

/// The `domain` of every `ErrorInfo` we send.
pub const DOMAIN: &str = "grabd";

/// Metadata key under which the state of the caller's rate limit is answered (draft-ietf-httpapi-ratelimit-headers).
pub const RATE_LIMIT: &str = "ratelimit";
/// Metadata key under which the rate limit's policy is answered.
pub const RATE_LIMIT_POLICY: &str = "ratelimit-policy";
/// Metadata key of the request id, both ways.
pub const REQUEST_ID: &str = "x-request-id";
/// Metadata key of the trace that a request belongs to (W3C Trace Context).
pub const TRACEPARENT: &str = "traceparent";

/// The `reason` of an error code: its name without the enum's prefix.
pub fn of(code: ErrorCode) -> &'static str {
    code.as_str_name().trim_start_matches("ERROR_CODE_")
}

/// The error code of an RPC error. Whatever carries no reason of ours is an internal error.
pub fn code(status: &Status) -> ErrorCode {
    status
        .get_details_error_info()
        .filter(|info| info.domain == DOMAIN)
        .and_then(|info| ErrorCode::from_str_name(&format!("ERROR_CODE_{}", info.reason)))
        .filter(|code| *code != ErrorCode::Unspecified)
        .unwrap_or(ErrorCode::InternalError)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use tonic::Code;
    use tonic_types::ErrorDetails;

    use super::*;

    fn with(reason: &str, domain: &str) -> Status {
        let details = ErrorDetails::with_error_info(reason, domain, HashMap::new());
        Status::with_error_details(Code::Unknown, "x", details)
    }

    #[test]
    fn reasons_come_back_as_codes() {
        for number in 1..=13 {
            let expected = ErrorCode::try_from(number).unwrap();
            assert_eq!(code(&with(of(expected), DOMAIN)), expected);
        }
        assert_eq!(of(ErrorCode::SsrfDetected), "SSRF_DETECTED");
    }

    #[test]
    fn everything_else_is_internal() {
        for status in
            [with("SSRF_DETECTED", "other"), with("TEAPOT", DOMAIN), with("UNSPECIFIED", DOMAIN), Status::internal("x")]
        {
            assert_eq!(code(&status), ErrorCode::InternalError);
        }
    }
}
