//! What an agent does about an error.

use grabd_proto::v1::ErrorCode;

/// The next step after an error of that code.
pub(super) fn of(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::Unauthorized => "The connection's credential is not valid any more: ask the user to connect again.",
        ErrorCode::BadRequest => "Correct the argument that the message names, and call again.",
        ErrorCode::InvalidViewport => {
            "Call again with width from 320 to 1920 and height from 240 to 1080, as integers."
        }
        ErrorCode::SsrfDetected => {
            "Only public pages can be captured. Do not retry this address; ask the user for a public one."
        }
        ErrorCode::IdempotencyMismatch => {
            "Call again with a fresh UUID as idempotency_key; repeat a key only with the very same arguments."
        }
        ErrorCode::CreditsExhausted => "Call get_usage; the user can top up at its top_up address.",
        ErrorCode::NotFound => "Call list_grabs to find the id; grabs of other teams or environments are not visible.",
        ErrorCode::IdempotencyConflict => {
            "The first call with this idempotency_key still runs: wait 2 seconds, then repeat this very call."
        }
        ErrorCode::RenderBlocked => {
            "The site refuses automated visitors; nothing was charged. Retrying rarely helps: try another page, or tell \
             the user."
        }
        ErrorCode::RateLimitExceeded => "Wait as long as the message says, then call again; poll less often.",
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
    fn every_code_has_a_hint_of_its_own() {
        let hints: Vec<&str> = (1..=13).map(|code| of(ErrorCode::try_from(code).unwrap())).collect();
        assert!(hints.iter().enumerate().all(|(at, hint)| !hint.is_empty() && !hints[..at].contains(hint)));
        assert!(ErrorCode::try_from(14).is_err(), "a code was added: it wants a hint");
    }
}
