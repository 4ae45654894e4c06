//! Converts faults to gRPC statuses. The name of the code is the reason of a `google.rpc.ErrorInfo`.

use std::collections::HashMap;
use std::time::Duration;

use grabd_domain::Fault;
use grabd_domain::faults::{Code, ErrorCause};
use grabd_domain::oauth::OauthScope;
use grabd_engine::Error;
use grabd_engine::grabs::CreateError;
use grabd_proto::reason;
use grabd_proto::v1::{self, ErrorCode};
use tonic::{Code as Grpc, Status};
use tonic_types::{ErrorDetails, StatusExt};

/// Retry delay when an address has too many open calls.
const CALLS_RETRY: Duration = Duration::from_secs(1);
/// The error of captures of a batch whose time is up.
const OUT_OF_TIME: &str =
    "The captures before this one took too long. Send the batch again with the same Idempotency-Key.";

/// The status of an error, or of a fault. What went wrong inside is logged here.
///
/// A function, because neither type is of this crate: none can be converted to the other with `From`.
pub(crate) fn to_status(error: impl Into<Error>) -> Status {
    let fault = &error.into().into_fault();
    let mut details =
        ErrorDetails::with_error_info(reason::of(to_proto(fault.code())), reason::DOMAIN, metadata(fault));
    if let Some(field) = fault.field() {
        details.add_bad_request_violation(field.path(), fault.to_string());
    }
    if let Some(delay) = fault.retry_after() {
        details.set_retry_info(Some(delay));
    }
    if let Some((subject, limit)) = quota(fault) {
        details.add_quota_failure_violation(subject, limit);
    }
    // For clients of gRPC, an outage has a code of its own.
    let code = if *fault == Fault::Unavailable { Grpc::Unavailable } else { grpc(fault.code()) };
    Status::with_error_details(code, fault.to_string(), details)
}

/// The error of one capture of a batch.
pub(crate) fn to_batch_error(refusal: &CreateError) -> v1::BatchError {
    let fault = match refusal {
        CreateError::Fault(fault) => fault,
        CreateError::OutOfTime => &Fault::InternalError,
    };
    let message = match refusal {
        CreateError::Fault(fault) => fault.to_string(),
        CreateError::OutOfTime => OUT_OF_TIME.to_owned(),
    };
    v1::BatchError {
        code: to_proto(fault.code()).into(),
        message,
        cause: cause_to_proto(fault.cause()).into(),
        retry_after: fault.retry_after().and_then(|delay| prost_types::Duration::try_from(delay).ok()),
    }
}

/// The status for calls beyond the limit of open calls per address. The listener sends it without reading the call.
pub fn too_many_calls() -> Status {
    let code = Code::RateLimitExceeded;
    let metadata = HashMap::from([(reason::CAUSE.to_owned(), code.cause().as_str().to_owned())]);
    let mut details = ErrorDetails::with_error_info(reason::of(to_proto(code)), reason::DOMAIN, metadata);
    details.set_retry_info(Some(CALLS_RETRY));
    Status::with_error_details(grpc(code), "Too many calls of this address are under way.", details)
}

/// The status of a stream that ends before its grab, because the service stops or the stream is old. The client resumes it
/// at once.
pub(crate) fn stream_cut() -> Status {
    let metadata = HashMap::from([(reason::CAUSE.to_owned(), ErrorCause::Service.as_str().to_owned())]);
    let mut details =
        ErrorDetails::with_error_info(reason::of(to_proto(Code::InternalError)), reason::DOMAIN, metadata);
    details.set_retry_info(Some(Duration::ZERO));
    Status::with_error_details(Grpc::Unavailable, "The stream was cut; resume it with after_revision.", details)
}

/// The metadata of the `ErrorInfo` of a fault: its cause, and the scope that the caller's token would need.
fn metadata(fault: &Fault) -> HashMap<String, String> {
    let mut metadata = HashMap::from([(reason::CAUSE.to_owned(), fault.cause().as_str().to_owned())]);
    if let Fault::Forbidden { needed, .. } = fault {
        metadata.insert(reason::OAUTH_SCOPE.to_owned(), OauthScope::including(*needed).to_string());
    }
    metadata
}

/// The protobuf value of a cause.
pub(crate) const fn cause_to_proto(cause: ErrorCause) -> v1::ErrorCause {
    match cause {
        ErrorCause::Request => v1::ErrorCause::Request,
        ErrorCause::Target => v1::ErrorCause::Target,
        ErrorCause::Service => v1::ErrorCause::Service,
    }
}

/// The cause of a protobuf value.
pub(crate) const fn cause_from_proto(cause: v1::ErrorCause) -> Option<ErrorCause> {
    match cause {
        v1::ErrorCause::Unspecified => None,
        v1::ErrorCause::Request => Some(ErrorCause::Request),
        v1::ErrorCause::Target => Some(ErrorCause::Target),
        v1::ErrorCause::Service => Some(ErrorCause::Service),
    }
}

const fn grpc(code: Code) -> Grpc {
    match code {
        Code::Unauthorized => Grpc::Unauthenticated,
        Code::Forbidden => Grpc::PermissionDenied,
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

/// The protobuf value of a code.
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
        Code::Forbidden => ErrorCode::Forbidden,
    }
}

fn quota(fault: &Fault) -> Option<(&'static str, String)> {
    match fault {
        Fault::RateLimitExceeded { per_minute, .. } => Some(("requests", format!("{per_minute} per minute"))),
        Fault::WaitLimitExceeded { limit, .. } => Some(("waits", limit.to_string())),
        Fault::QueueTooLong { wait_s } => Some(("sync-queue", format!("{wait_s} s of expected wait"))),
        Fault::FailedRenderTimeExceeded { per_minute, .. } => {
            Some(("failed-render-time", format!("{per_minute} s per minute")))
        }
        Fault::QueueLimitExceeded { limit } => Some(("async-queue", format!("{limit} grabs open at a time"))),
        Fault::TeamStorageFull { limit_megabytes, .. } => {
            Some(("storage", format!("{limit_megabytes} megabytes of images")))
        }
        Fault::AccountStorageFull { counted, limit_megabytes, .. } => {
            Some(("storage", format!("{limit_megabytes} megabytes of {}", counted.about())))
        }
        Fault::StorageFull
        | Fault::Unauthorized
        | Fault::TeamSuspended
        | Fault::LinkRefused(_)
        | Fault::KeyExpired { .. }
        | Fault::Forbidden { .. }
        | Fault::BadRequest(_)
        | Fault::InvalidViewport(_)
        | Fault::SsrfDetected(_)
        | Fault::IdempotencyMismatch(_)
        | Fault::CreditsExhausted
        | Fault::NotFound { .. }
        | Fault::IdempotencyConflict
        | Fault::ImagesBusy { .. }
        | Fault::RenderBlocked(_)
        | Fault::RenderFailed(_)
        | Fault::Unavailable
        | Fault::InternalError => None,
    }
}

#[cfg(test)]
mod tests {
    use grabd_domain::faults::Field;
    use grabd_domain::limits::OUTAGE_RETRY;

    use super::*;

    #[test]
    fn reasons_match_the_names_of_codes() {
        for code in Code::ALL {
            let proto = to_proto(code);
            assert_eq!(reason::of(proto), code.as_str().to_uppercase());
        }
    }

    #[test]
    fn cut_stream_has_the_details_of_an_error() {
        let status = stream_cut();
        assert_eq!((status.code(), reason::code(&status)), (Grpc::Unavailable, ErrorCode::InternalError));
        assert_eq!(reason::cause(&status), v1::ErrorCause::Service);
    }

    #[test]
    fn causes_survive_the_wire() {
        for cause in ErrorCause::ALL {
            assert_eq!(cause_from_proto(cause_to_proto(cause)), Some(cause));
            assert_eq!(reason::cause_name(cause_to_proto(cause)), Some(cause.as_str()));
        }
    }

    #[test]
    fn details_contain_field_retry_delay_and_quota() {
        let field = Field::new("width", "1", "an integer");
        let status = to_status(Fault::InvalidViewport(field));
        assert_eq!((status.code(), reason::code(&status)), (Grpc::InvalidArgument, ErrorCode::InvalidViewport));
        assert_eq!(status.get_details_bad_request().unwrap().field_violations[0].field, "width");

        let status = to_status(Fault::RateLimitExceeded { per_minute: 60, retry_after_s: 3 });
        assert_eq!(status.code(), Grpc::ResourceExhausted);
        assert_eq!(status.get_details_retry_info().unwrap().retry_delay, Some(Duration::from_secs(3)));
        assert_eq!(status.get_details_quota_failure().unwrap().violations[0].subject, "requests");

        let status = to_status(Fault::ImagesBusy { retry_after_s: 5 });
        assert_eq!((status.code(), reason::code(&status)), (Grpc::ResourceExhausted, ErrorCode::RateLimitExceeded));
        assert_eq!(status.get_details_retry_info().unwrap().retry_delay, Some(Duration::from_secs(5)));
        let status = to_status(Fault::QueueTooLong { wait_s: 31 });
        assert_eq!((status.code(), reason::code(&status)), (Grpc::ResourceExhausted, ErrorCode::RateLimitExceeded));
        assert_eq!(status.get_details_retry_info().unwrap().retry_delay, Some(Duration::from_secs(31)));
        assert_eq!(status.get_details_quota_failure().unwrap().violations[0].subject, "sync-queue");
        assert_eq!(reason::cause(&status), v1::ErrorCause::Service);

        let status = to_status(Fault::FailedRenderTimeExceeded { per_minute: 20, retry_after_s: 7 });
        assert_eq!(status.get_details_retry_info().unwrap().retry_delay, Some(Duration::from_secs(7)));
        assert_eq!(reason::cause(&status), v1::ErrorCause::Request);

        let status = to_status(Fault::Unavailable);
        assert_eq!((status.code(), reason::code(&status)), (Grpc::Unavailable, ErrorCode::InternalError));
        assert_eq!(status.get_details_retry_info().unwrap().retry_delay, Some(OUTAGE_RETRY));
        assert_eq!(reason::cause(&status), v1::ErrorCause::Service);

        let status = to_status(Fault::InternalError);
        assert_eq!((status.code(), reason::code(&status)), (Grpc::Internal, ErrorCode::InternalError));
    }
}
