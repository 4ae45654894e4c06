//! A fault as a gRPC status: the code's name is the reason of a `google.rpc.ErrorInfo`.

use std::collections::HashMap;
use std::time::Duration;

use grabd_domain::Fault;
use grabd_domain::faults::Code;
use grabd_proto::reason;
use grabd_proto::v1::ErrorCode;
use tonic::{Code as Grpc, Status};
use tonic_types::{ErrorDetails, StatusExt};

/// When a caller whose request is still in flight should ask again.
const CONFLICT_RETRY: Duration = Duration::from_secs(2);
/// When a caller whose queue is full should ask again.
const QUEUE_RETRY: Duration = Duration::from_secs(5);
/// When a caller who has too many calls under way should ask again.
const CALLS_RETRY: Duration = Duration::from_secs(1);

/// The status of a fault.
pub(crate) fn to_status(fault: &Fault) -> Status {
    let mut details = details(fault.code());
    if let Some(field) = fault.field() {
        details.add_bad_request_violation(field.name, fault.to_string());
    }
    if let Some(delay) = retry_after(fault) {
        details.set_retry_info(Some(delay));
    }
    if let Some((subject, limit)) = quota(fault) {
        details.add_quota_failure_violation(subject, limit);
    }
    Status::with_error_details(grpc(fault.code()), fault.to_string(), details)
}

/// The status of a call beyond those that one address may have under way, which a listener refuses before it is read.
pub fn too_many_calls() -> Status {
    let code = Code::RateLimitExceeded;
    let mut details = details(code);
    details.set_retry_info(Some(CALLS_RETRY));
    Status::with_error_details(grpc(code), "Too many calls of this address are under way.", details)
}

fn details(code: Code) -> ErrorDetails {
    ErrorDetails::with_error_info(reason::of(to_proto(code)), reason::DOMAIN, HashMap::new())
}

const fn grpc(code: Code) -> Grpc {
    match code {
        Code::Unauthorized => Grpc::Unauthenticated,
        Code::BadRequest | Code::InvalidViewport | Code::SsrfDetected | Code::IdempotencyMismatch => {
            Grpc::InvalidArgument
        }
        Code::CreditsExhausted | Code::RenderBlocked => Grpc::FailedPrecondition,
        Code::NotFound => Grpc::NotFound,
        Code::IdempotencyConflict => Grpc::Aborted,
        Code::RateLimitExceeded | Code::QueueLimitExceeded => Grpc::ResourceExhausted,
        Code::RenderFailed | Code::InternalError => Grpc::Internal,
    }
}

/// The proto's name of a code.
pub(crate) const fn to_proto(code: Code) -> ErrorCode {
    match code {
        Code::Unauthorized => ErrorCode::Unauthorized,
        Code::BadRequest => ErrorCode::BadRequest,
        Code::InvalidViewport => ErrorCode::InvalidViewport,
        Code::SsrfDetected => ErrorCode::SsrfDetected,
        Code::IdempotencyMismatch => ErrorCode::IdempotencyMismatch,
        Code::CreditsExhausted => ErrorCode::CreditsExhausted,
        Code::NotFound => ErrorCode::NotFound,
        Code::IdempotencyConflict => ErrorCode::IdempotencyConflict,
        Code::RenderBlocked => ErrorCode::RenderBlocked,
        Code::RateLimitExceeded => ErrorCode::RateLimitExceeded,
        Code::QueueLimitExceeded => ErrorCode::QueueLimitExceeded,
        Code::RenderFailed => ErrorCode::RenderFailed,
        Code::InternalError => ErrorCode::InternalError,
    }
}

fn retry_after(fault: &Fault) -> Option<Duration> {
    match fault {
        Fault::RateLimitExceeded { retry_after_s, .. } => Some(Duration::from_secs(*retry_after_s)),
        Fault::QueueLimitExceeded { .. } => Some(QUEUE_RETRY),
        Fault::IdempotencyConflict => Some(CONFLICT_RETRY),
        Fault::Unauthorized
        | Fault::BadRequest(_)
        | Fault::InvalidViewport(_)
        | Fault::SsrfDetected(_)
        | Fault::IdempotencyMismatch(_)
        | Fault::CreditsExhausted
        | Fault::NotFound { .. }
        | Fault::RenderBlocked(_)
        | Fault::RenderFailed(_)
        | Fault::InternalError => None,
    }
}

fn quota(fault: &Fault) -> Option<(&'static str, String)> {
    match fault {
        Fault::RateLimitExceeded { per_minute, .. } => Some(("requests", format!("{per_minute} per minute"))),
        Fault::QueueLimitExceeded { limit } => Some(("async-queue", format!("{limit} grabs open at a time"))),
        Fault::Unauthorized
        | Fault::BadRequest(_)
        | Fault::InvalidViewport(_)
        | Fault::SsrfDetected(_)
        | Fault::IdempotencyMismatch(_)
        | Fault::CreditsExhausted
        | Fault::NotFound { .. }
        | Fault::IdempotencyConflict
        | Fault::RenderBlocked(_)
        | Fault::RenderFailed(_)
        | Fault::InternalError => None,
    }
}

#[cfg(test)]
mod tests {
    use grabd_domain::faults::Field;

    use super::*;

    #[test]
    fn every_code_goes_there_and_back_by_its_reason() {
        for code in Code::ALL {
            let proto = to_proto(code);
            assert_eq!(reason::of(proto), code.as_str().to_uppercase());
        }
    }

    #[test]
    fn details_say_what_a_program_needs() {
        let field = Field::new("width", "1", "an integer");
        let status = to_status(&Fault::InvalidViewport(field));
        assert_eq!((status.code(), reason::code(&status)), (Grpc::InvalidArgument, ErrorCode::InvalidViewport));
        assert_eq!(status.get_details_bad_request().unwrap().field_violations[0].field, "width");

        let status = to_status(&Fault::RateLimitExceeded { per_minute: 60, retry_after_s: 3 });
        assert_eq!(status.code(), Grpc::ResourceExhausted);
        assert_eq!(status.get_details_retry_info().unwrap().retry_delay, Some(Duration::from_secs(3)));
        assert_eq!(status.get_details_quota_failure().unwrap().violations[0].subject, "requests");

        let status = to_status(&Fault::InternalError);
        assert_eq!((status.code(), reason::code(&status)), (Grpc::Internal, ErrorCode::InternalError));
    }
}
