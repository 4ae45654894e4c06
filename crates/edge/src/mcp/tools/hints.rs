//! Hints for agents on how to handle an error.

use grabd_proto::v1::ErrorCode;

/// The recommended next step after an error.
pub(super) fn for_code(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::Unauthorized => "The connection's credential is no longer valid: ask the user to connect again.",
        ErrorCode::Forbidden => {
            "This connection may not do this: ask the user to connect again, or for an API key, with the scope named above."
        }
        ErrorCode::BadRequest => "Correct the argument that the message names, and call again.",
        ErrorCode::InvalidViewport => {
            "Call again with width from 320 to 1920 and height from 240 to 1080, as integers."
        }
        ErrorCode::SsrfDetected => {
            "Only public pages can be captured. Do not retry this address; ask the user for a public one."
        }
        ErrorCode::IdempotencyMismatch => {
            "Call again with a new UUID as idempotency_key; repeat a key only with the same arguments."
        }
        ErrorCode::CreditsExhausted => "Call get_usage; the user can top up at its top_up address.",
        ErrorCode::NotFound => "Call list_grabs to find the id; grabs of other teams or environments are not visible.",
        ErrorCode::IdempotencyConflict => {
            "The first call with this idempotency_key is still running: wait 2 seconds, then repeat this call."
        }
        ErrorCode::RenderBlocked => {
            "The site refuses automated visitors; nothing was charged. Retrying rarely helps: try another page, or tell \
             the user."
        }
        ErrorCode::RateLimitExceeded => "Wait for the time in the message, then call again; poll less often.",
        ErrorCode::QueueLimitExceeded => {
            "Wait until earlier captures are done (list_grabs with status pending or processing), then call again."
        }
        ErrorCode::RenderFailed => {
            "Nothing was charged. Check that the address opens in a browser; for a slow page call again with async set to \
             true, then poll get_grab."
        }
        ErrorCode::InternalError | ErrorCode::Unspecified => {
            "Nothing was charged. Call again in a few seconds, with the same idempotency_key if there was one; tell the \
             user if it persists."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_code_has_a_unique_hint() {
        let hints: Vec<&str> = (1..=14).map(|code| for_code(ErrorCode::try_from(code).unwrap())).collect();
        assert!(hints.iter().enumerate().all(|(at, hint)| !hint.is_empty() && !hints[..at].contains(hint)));
        assert!(ErrorCode::try_from(15).is_err(), "a new code needs a hint");
    }
}
