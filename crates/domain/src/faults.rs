//! What a caller may be told went wrong: one row for each error code of the public contract.

use std::fmt;

/// A stable, machine-readable error code of the contract (its section 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each variant is its wire word; the contract's table says the rest")]
pub enum Code {
    Unauthorized,
    BadRequest,
    InvalidViewport,
    SsrfDetected,
    IdempotencyMismatch,
    CreditsExhausted,
    NotFound,
    IdempotencyConflict,
    RenderBlocked,
    RateLimitExceeded,
    QueueLimitExceeded,
    RenderFailed,
    InternalError,
}

impl Code {
    /// Every code, in the contract's order.
    pub const ALL: [Self; 13] = [
        Self::Unauthorized,
        Self::BadRequest,
        Self::InvalidViewport,
        Self::SsrfDetected,
        Self::IdempotencyMismatch,
        Self::CreditsExhausted,
        Self::NotFound,
        Self::IdempotencyConflict,
        Self::RenderBlocked,
        Self::RateLimitExceeded,
        Self::QueueLimitExceeded,
        Self::RenderFailed,
        Self::InternalError,
    ];

    /// The wire word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unauthorized => "unauthorized",
            Self::BadRequest => "bad_request",
            Self::InvalidViewport => "invalid_viewport",
            Self::SsrfDetected => "ssrf_detected",
            Self::IdempotencyMismatch => "idempotency_mismatch",
            Self::CreditsExhausted => "credits_exhausted",
            Self::NotFound => "not_found",
            Self::IdempotencyConflict => "idempotency_conflict",
            Self::RenderBlocked => "render_blocked",
            Self::RateLimitExceeded => "rate_limit_exceeded",
            Self::QueueLimitExceeded => "queue_limit_exceeded",
            Self::RenderFailed => "render_failed",
            Self::InternalError => "internal_error",
        }
    }

    /// The code behind a wire word.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.as_str() == text)
    }
}

/// A field of a request that cannot be accepted: which one, what was seen, what is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The name on the wire.
    pub name: &'static str,
    /// What came, shortened; empty when nothing did.
    pub seen: String,
    /// What would have been accepted, as the end of "must be …".
    pub allowed: String,
}

/// The most of a caller's own text that an error repeats, in characters.
const SEEN_CHARS: usize = 120;

impl Field {
    /// A refused field. `seen` is shortened and made printable.
    pub fn new(name: &'static str, seen: &str, allowed: impl Into<String>) -> Self {
        let mut short: String = seen.chars().take(SEEN_CHARS).filter(|c| !c.is_control()).collect();
        if short.len() < seen.len() && seen.chars().count() > SEEN_CHARS {
            short.push('…');
        }
        Self { name, seen: short, allowed: allowed.into() }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, seen, allowed } = self;
        match seen.is_empty() {
            true => write!(f, "`{name}` must be {allowed}."),
            false => write!(f, "`{name}` must be {allowed}; got {seen}."),
        }
    }
}

/// A failure as the caller may see it. Causes from the inside have no place here: they are logged where they happen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// No usable credential.
    #[error("Missing or invalid Bearer token.")]
    Unauthorized,
    /// Input that is not acceptable.
    #[error("{0}")]
    BadRequest(Field),
    /// `width` or `height` outside its range or of the wrong type.
    #[error("{0}")]
    InvalidViewport(Field),
    /// The target is not a public address.
    #[error("The target URL is not an allowed public address. {0}")]
    SsrfDetected(Field),
    /// A key that cannot be used for this request.
    #[error("{0}")]
    IdempotencyMismatch(Field),
    /// Nothing left to spend.
    #[error("No live credits left. Read the usage endpoint, then add a prepaid top-up or wait for the next grant.")]
    CreditsExhausted,
    /// Nothing there for this caller.
    #[error("No {what} with that id for this key.")]
    NotFound {
        /// The kind of thing that was looked for.
        what: &'static str,
    },
    /// The first request with this key is still running.
    #[error("A request with the same Idempotency-Key is still in flight; retry shortly for its answer.")]
    IdempotencyConflict,
    /// The target site refused to be captured.
    #[error("{0}")]
    RenderBlocked(String),
    /// Too many requests.
    #[error("Request rate limit exceeded: {per_minute} requests per minute. Retry in {retry_after_s} s.")]
    RateLimitExceeded {
        /// The limit in force.
        per_minute: u32,
        /// Seconds until one request is admitted.
        retry_after_s: u64,
    },
    /// Too many asynchronous grabs open.
    #[error("Async queue limit exceeded: {limit} grabs of this team are already pending or processing.")]
    QueueLimitExceeded {
        /// The limit in force.
        limit: u32,
    },
    /// The page could not be rendered.
    #[error("{0}")]
    RenderFailed(String),
    /// Our own failure; the cause is in the log under the request id.
    #[error("Something went wrong on our side; nothing was charged. Retry, and quote the X-Request-Id if it persists.")]
    InternalError,
}

impl Fault {
    /// The code callers branch on.
    pub const fn code(&self) -> Code {
        match self {
            Self::Unauthorized => Code::Unauthorized,
            Self::BadRequest(_) => Code::BadRequest,
            Self::InvalidViewport(_) => Code::InvalidViewport,
            Self::SsrfDetected(_) => Code::SsrfDetected,
            Self::IdempotencyMismatch(_) => Code::IdempotencyMismatch,
            Self::CreditsExhausted => Code::CreditsExhausted,
            Self::NotFound { .. } => Code::NotFound,
            Self::IdempotencyConflict => Code::IdempotencyConflict,
            Self::RenderBlocked(_) => Code::RenderBlocked,
            Self::RateLimitExceeded { .. } => Code::RateLimitExceeded,
            Self::QueueLimitExceeded { .. } => Code::QueueLimitExceeded,
            Self::RenderFailed(_) => Code::RenderFailed,
            Self::InternalError => Code::InternalError,
        }
    }

    /// The field that was refused, when one was.
    pub const fn field(&self) -> Option<&Field> {
        match self {
            Self::BadRequest(field)
            | Self::InvalidViewport(field)
            | Self::SsrfDetected(field)
            | Self::IdempotencyMismatch(field) => Some(field),
            Self::Unauthorized
            | Self::CreditsExhausted
            | Self::NotFound { .. }
            | Self::IdempotencyConflict
            | Self::RenderBlocked(_)
            | Self::RateLimitExceeded { .. }
            | Self::QueueLimitExceeded { .. }
            | Self::RenderFailed(_)
            | Self::InternalError => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_words_are_one_to_one() {
        for code in Code::ALL {
            assert_eq!(Code::parse(code.as_str()), Some(code));
        }
        assert_eq!(Code::parse("teapot"), None);
    }

    #[test]
    fn a_field_says_which_what_and_what_else() {
        let field = Field::new("width", "100", "an integer from 320 to 1920");
        assert_eq!(Fault::InvalidViewport(field).to_string(), "`width` must be an integer from 320 to 1920; got 100.");
        assert_eq!(Field::new("url", "", "present").to_string(), "`url` must be present.");
    }

    #[test]
    fn what_was_seen_is_short_and_printable() {
        let field = Field::new("url", &format!("a\n\0{}", "é".repeat(500)), "x");
        assert!(field.seen.chars().count() <= SEEN_CHARS + 1);
        assert!(field.seen.ends_with('…') && !field.seen.contains(char::is_control));
    }
}
