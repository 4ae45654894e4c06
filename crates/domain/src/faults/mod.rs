//! Errors that callers see: one variant for each error code of the public contract.

mod link_refusal;

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

pub use self::link_refusal::LinkRefusal;
use crate::credentials::{OauthScope, Scope, Scopes};
use crate::limits::{CONFLICT_RETRY, OUTAGE_RETRY, QUEUE_RETRY, STORAGE_RETRY, TEAM_STORAGE_RETRY};
use crate::storage::Counted;
use crate::timestamp::Timestamp;

/// A stable, machine-readable error code of the contract (section 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each variant is named after its code in the contract")]
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
    /// Not in the contract's table, like every later addition.
    Forbidden,
}

impl Code {
    /// All codes, in the order of the contract, and then the additions to it.
    pub const ALL: [Self; 14] = [
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
        Self::Forbidden,
    ];

    /// The name in the contract.
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
            Self::Forbidden => "forbidden",
        }
    }

    /// Whose fault an error with this code usually is.
    pub const fn cause(self) -> ErrorCause {
        match self {
            Self::Unauthorized
            | Self::BadRequest
            | Self::InvalidViewport
            | Self::SsrfDetected
            | Self::IdempotencyMismatch
            | Self::CreditsExhausted
            | Self::NotFound
            | Self::IdempotencyConflict
            | Self::RateLimitExceeded
            | Self::QueueLimitExceeded
            | Self::Forbidden => ErrorCause::Request,
            Self::RenderBlocked | Self::RenderFailed => ErrorCause::Target,
            Self::InternalError => ErrorCause::Service,
        }
    }

    /// Parses the name in the contract.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.as_str() == text)
    }
}

/// Whose fault an error is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorCause {
    /// The request, or the caller's limits.
    Request,
    /// The target site.
    Target,
    /// This service, or its load.
    Service,
}

impl ErrorCause {
    /// All causes.
    pub const ALL: [Self; 3] = [Self::Request, Self::Target, Self::Service];

    /// The name in the APIs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Target => "target",
            Self::Service => "service",
        }
    }
}

/// An invalid field of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The field name in the API.
    pub name: &'static str,
    /// The member of the field with the value, if the field is an object and one of its members is invalid.
    pub member: Option<&'static str>,
    /// The received value, shortened. Empty if the field is missing.
    pub seen: String,
    /// What is accepted, as the end of "must be …".
    pub allowed: String,
}

/// Maximum length of the received value in an error, in characters.
const SEEN_CHARS: usize = 120;

impl Field {
    /// Creates an invalid field. `seen` is shortened, and control characters are removed.
    pub fn new(name: &'static str, seen: &str, allowed: impl Into<String>) -> Self {
        let mut short: String = seen.chars().take(SEEN_CHARS).filter(|c| !c.is_control()).collect();
        if short.len() < seen.len() && seen.chars().count() > SEEN_CHARS {
            short.push('…');
        }
        Self { name, member: None, seen: short, allowed: allowed.into() }
    }

    /// The same about a member of the field.
    #[must_use]
    pub fn in_member(self, member: Option<&'static str>) -> Self {
        Self { member, ..self }
    }

    /// The name in the API: that of the field, and after a dot that of its member.
    pub fn path(&self) -> Cow<'static, str> {
        match self.member {
            Some(member) => format!("{}.{member}", self.name).into(),
            None => self.name.into(),
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self { seen, allowed, .. }, name) = (self, self.path());
        match seen.is_empty() {
            true => write!(f, "`{name}` must be {allowed}."),
            false => write!(f, "`{name}` must be {allowed}{BEFORE_SEEN}{seen}."),
        }
    }
}

/// Separates what is allowed from the received value, with which the message of an error ends.
const BEFORE_SEEN: &str = "; got ";

/// The message of an error without the received value, which may be secret: a URL with a password, for example.
pub fn without_seen(message: &str) -> Cow<'_, str> {
    match message.split_once(BEFORE_SEEN) {
        Some((rule, _)) => Cow::Owned(format!("{rule}.")),
        None => Cow::Borrowed(message),
    }
}

/// What a credential may be used for that lacks a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Granted {
    /// An API key with these scopes.
    Key(Scopes),
    /// An app's access token.
    App,
}

impl Granted {
    /// The message for the caller who lacks a scope.
    fn lacks(self, needed: Scope) -> String {
        match self {
            Self::Key(granted) => format!(
                "This API key lacks the scope `{needed}`; its scopes: {granted}. Use another key, or create one."
            ),
            Self::App => {
                let needed = OauthScope::including(needed);
                format!("The access of this app lacks the scope `{needed}`. Connect the app again with this scope.")
            }
        }
    }
}

/// An error that callers see. Internal causes are not included; they are logged where they occur.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Missing or invalid credential.
    #[error("Missing or invalid Bearer token.")]
    Unauthorized,
    /// The credential is valid, but its team is suspended.
    #[error("Your team is suspended. Contact the administrator of this service.")]
    TeamSuspended,
    /// A signed link opens nothing.
    #[error("{0}")]
    LinkRefused(LinkRefusal),
    /// The API key has expired.
    #[error("This API key expired at {expired_at}. Create another one.")]
    KeyExpired {
        /// When it expired.
        expired_at: Timestamp,
    },
    /// The credential is valid, but not for this kind of request.
    #[error("{}", granted.lacks(*needed))]
    Forbidden {
        /// The scope that the request needs.
        needed: Scope,
        /// What the credential may be used for.
        granted: Granted,
    },
    /// Invalid input.
    #[error("{0}")]
    BadRequest(Field),
    /// `width` or `height` is out of range or of the wrong type.
    #[error("{0}")]
    InvalidViewport(Field),
    /// The target is not a public address.
    #[error("The target URL is not an allowed public address. {0}")]
    SsrfDetected(Field),
    /// The idempotency key is malformed or was used for another request.
    #[error("{0}")]
    IdempotencyMismatch(Field),
    /// No credits available.
    #[error("No live credits left. Read the usage endpoint, then add a prepaid top-up or wait for the next grant.")]
    CreditsExhausted,
    /// The caller has nothing with that id.
    #[error("No {what} with that id for this key.")]
    NotFound {
        /// The kind of resource.
        what: &'static str,
    },
    /// The first request with this key is still in flight.
    #[error("A request with the same Idempotency-Key is still in flight; retry shortly for its answer.")]
    IdempotencyConflict,
    /// The target site blocked the capture.
    #[error("{0}")]
    RenderBlocked(String),
    /// Too many requests.
    #[error("Request rate limit exceeded: {per_minute} requests per minute. Retry in {retry_after_s} s.")]
    RateLimitExceeded {
        /// The limit in force.
        per_minute: u32,
        /// Seconds until the next request is allowed.
        retry_after_s: u64,
    },
    /// The team waits for grabs too often, or for too many at once.
    #[error("Too many waits for grabs: {limit}. Retry in {retry_after_s} s.")]
    WaitLimitExceeded {
        /// The limit in force.
        limit: WaitLimit,
        /// Seconds until another wait may be allowed.
        retry_after_s: u64,
    },
    /// Other images take all the memory that images may take.
    #[error("Too many images are being processed at the moment. Retry in {retry_after_s} s.")]
    ImagesBusy {
        /// Seconds until it is worth trying again.
        retry_after_s: u64,
    },
    /// The expected wait of a synchronous grab is longer than its request can wait.
    #[error(
        "The queue of synchronous grabs is too long: the expected wait is {wait_s} s, more than a synchronous request \
         can wait. Nothing was charged. Retry in {wait_s} s, or create the grab asynchronously."
    )]
    QueueTooLong {
        /// The expected wait in seconds.
        wait_s: u64,
    },
    /// Renders of the account failed for too long.
    #[error(
        "Failed render time exceeded: failed captures of this account may use {per_minute} s per minute. Retry in \
         {retry_after_s} s."
    )]
    FailedRenderTimeExceeded {
        /// The limit in force, in seconds per minute.
        per_minute: u32,
        /// Seconds until the next create is allowed.
        retry_after_s: u64,
    },
    /// Too many asynchronous grabs open.
    #[error("Async queue limit exceeded: {limit} grabs of this team are already pending or processing.")]
    QueueLimitExceeded {
        /// The limit in force.
        limit: u32,
    },
    /// The disk of the images is almost full, so nothing is created for now.
    #[error(
        "The service is short of disk space and creates no grabs for now; nothing was charged. Retry in {} s.",
        STORAGE_RETRY.as_secs()
    )]
    StorageFull,
    /// The team's images take more space than it may use.
    #[error(
        "The images of this team take {stored_megabytes} MB, and it may use {limit_megabytes} MB; nothing was charged. \
         Delete grabs that are no longer needed."
    )]
    TeamStorageFull {
        /// The size of the team's images.
        stored_megabytes: u64,
        /// The limit in force.
        limit_megabytes: u64,
    },
    /// The account stores as much as it may.
    #[error(
        "The {} of this account take {stored_megabytes} MB, and they may take {limit_megabytes} MB; nothing was charged. {}",
        counted.about(),
        counted.remedy()
    )]
    AccountStorageFull {
        /// What is counted.
        counted: Counted,
        /// What it takes.
        stored_megabytes: u64,
        /// The limit in force.
        limit_megabytes: u64,
    },
    /// The page could not be rendered.
    #[error("{0}")]
    RenderFailed(String),
    /// The database does not respond, so nothing can be done for now.
    #[error(
        "The service cannot reach its database at the moment. Retry in {} s, with the same Idempotency-Key if there is \
         one.",
        OUTAGE_RETRY.as_secs()
    )]
    Unavailable,
    /// Internal error. The cause is logged with the request id.
    #[error("Something went wrong on our side; nothing was charged. Retry, and quote the X-Request-Id if it persists.")]
    InternalError,
}

/// A limit of the waits of a team in one environment: long polls and streams of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitLimit {
    /// So many may begin in a minute.
    PerMinute(u32),
    /// So many may be open at the same time.
    Open(u32),
}

impl fmt::Display for WaitLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PerMinute(limit) => write!(f, "{limit} may begin in a minute"),
            Self::Open(limit) => write!(f, "{limit} may be open at the same time"),
        }
    }
}

impl Fault {
    /// The error code.
    pub const fn code(&self) -> Code {
        match self {
            // The contract has no code of its own for it: the credential opens nothing.
            Self::Unauthorized | Self::TeamSuspended | Self::KeyExpired { .. } | Self::LinkRefused(_) => {
                Code::Unauthorized
            }
            Self::Forbidden { .. } => Code::Forbidden,
            Self::BadRequest(_) => Code::BadRequest,
            Self::InvalidViewport(_) => Code::InvalidViewport,
            Self::SsrfDetected(_) => Code::SsrfDetected,
            Self::IdempotencyMismatch(_) => Code::IdempotencyMismatch,
            Self::CreditsExhausted => Code::CreditsExhausted,
            Self::NotFound { .. } => Code::NotFound,
            Self::IdempotencyConflict => Code::IdempotencyConflict,
            Self::RenderBlocked(_) => Code::RenderBlocked,
            // The contract has no code of its own for these. Clients retry this one later.
            Self::RateLimitExceeded { .. }
            | Self::WaitLimitExceeded { .. }
            | Self::ImagesBusy { .. }
            | Self::QueueTooLong { .. }
            | Self::FailedRenderTimeExceeded { .. }
            | Self::StorageFull
            | Self::TeamStorageFull { .. }
            | Self::AccountStorageFull { .. } => Code::RateLimitExceeded,
            Self::QueueLimitExceeded { .. } => Code::QueueLimitExceeded,
            Self::RenderFailed(_) => Code::RenderFailed,
            // The contract has no code of its own for an outage.
            Self::Unavailable | Self::InternalError => Code::InternalError,
        }
    }

    /// Whose fault it is.
    pub const fn cause(&self) -> ErrorCause {
        match self {
            Self::QueueTooLong { .. } | Self::ImagesBusy { .. } | Self::StorageFull => ErrorCause::Service,
            Self::Unauthorized
            | Self::LinkRefused(_)
            | Self::BadRequest(_)
            | Self::InvalidViewport(_)
            | Self::SsrfDetected(_)
            | Self::IdempotencyMismatch(_)
            | Self::CreditsExhausted
            | Self::NotFound { .. }
            | Self::IdempotencyConflict
            | Self::RenderBlocked(_)
            | Self::RateLimitExceeded { .. }
            | Self::WaitLimitExceeded { .. }
            | Self::FailedRenderTimeExceeded { .. }
            | Self::TeamSuspended
            | Self::KeyExpired { .. }
            | Self::Forbidden { .. }
            | Self::TeamStorageFull { .. }
            | Self::AccountStorageFull { .. }
            | Self::QueueLimitExceeded { .. }
            | Self::RenderFailed(_)
            | Self::Unavailable
            | Self::InternalError => self.code().cause(),
        }
    }

    /// How long the caller should wait before it tries again; `None` if that would not help. Interfaces send it as
    /// `Retry-After`.
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimitExceeded { retry_after_s, .. }
            | Self::WaitLimitExceeded { retry_after_s, .. }
            | Self::ImagesBusy { retry_after_s }
            | Self::FailedRenderTimeExceeded { retry_after_s, .. } => Some(Duration::from_secs(*retry_after_s)),
            Self::QueueTooLong { wait_s } => Some(Duration::from_secs(*wait_s)),
            Self::QueueLimitExceeded { .. } => Some(QUEUE_RETRY),
            Self::StorageFull => Some(STORAGE_RETRY),
            Self::TeamStorageFull { .. } | Self::AccountStorageFull { .. } => Some(TEAM_STORAGE_RETRY),
            Self::IdempotencyConflict => Some(CONFLICT_RETRY),
            Self::Unavailable => Some(OUTAGE_RETRY),
            Self::Unauthorized
            | Self::TeamSuspended
            | Self::LinkRefused(_)
            | Self::KeyExpired { .. }
            | Self::Forbidden { .. }
            | Self::BadRequest(_)
            | Self::InvalidViewport(_)
            | Self::SsrfDetected(_)
            | Self::IdempotencyMismatch(_)
            | Self::CreditsExhausted
            | Self::NotFound { .. }
            | Self::RenderBlocked(_)
            | Self::RenderFailed(_)
            | Self::InternalError => None,
        }
    }

    /// The same fault about another field, if it is about one.
    #[must_use]
    pub fn renamed(mut self, name: &'static str) -> Self {
        if let Self::BadRequest(field) | Self::SsrfDetected(field) = &mut self {
            field.name = name;
        }
        self
    }

    /// The invalid field, if any.
    pub const fn field(&self) -> Option<&Field> {
        match self {
            Self::BadRequest(field)
            | Self::InvalidViewport(field)
            | Self::SsrfDetected(field)
            | Self::IdempotencyMismatch(field) => Some(field),
            Self::Unauthorized
            | Self::TeamSuspended
            | Self::LinkRefused(_)
            | Self::KeyExpired { .. }
            | Self::Forbidden { .. }
            | Self::CreditsExhausted
            | Self::NotFound { .. }
            | Self::IdempotencyConflict
            | Self::RenderBlocked(_)
            | Self::RateLimitExceeded { .. }
            | Self::WaitLimitExceeded { .. }
            | Self::ImagesBusy { .. }
            | Self::QueueTooLong { .. }
            | Self::FailedRenderTimeExceeded { .. }
            | Self::QueueLimitExceeded { .. }
            | Self::StorageFull
            | Self::TeamStorageFull { .. }
            | Self::AccountStorageFull { .. }
            | Self::RenderFailed(_)
            | Self::Unavailable
            | Self::InternalError => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_names_round_trip() {
        for code in Code::ALL {
            assert_eq!(Code::parse(code.as_str()), Some(code));
        }
        assert_eq!(Code::parse("teapot"), None);
    }

    #[test]
    fn message_can_be_shown_without_the_received_value() {
        let field = Field::new("url", "\"https://user:secret@a.example/; got x\"", "an absolute URL");
        let fault = Fault::BadRequest(field);
        assert!(fault.to_string().contains("secret"));
        assert_eq!(without_seen(&fault.to_string()), "`url` must be an absolute URL.");
        let missing = Fault::BadRequest(Field::new("url", "", "an absolute URL")).to_string();
        assert_eq!(without_seen(&missing), missing);
    }

    #[test]
    fn every_code_has_a_cause() {
        for code in Code::ALL {
            let expected = match code.as_str() {
                "render_blocked" | "render_failed" => "target",
                "internal_error" => "service",
                _ => "request",
            };
            assert_eq!(code.cause().as_str(), expected, "{}", code.as_str());
        }
        let overloaded = Fault::QueueTooLong { wait_s: 30 };
        assert_eq!((overloaded.code(), overloaded.cause()), (Code::RateLimitExceeded, ErrorCause::Service));
        let failing = Fault::FailedRenderTimeExceeded { per_minute: 20, retry_after_s: 9 };
        assert_eq!((failing.code(), failing.cause()), (Code::RateLimitExceeded, ErrorCause::Request));
    }

    #[test]
    fn field_display_names_field_constraint_and_value() {
        let field = Field::new("width", "100", "an integer from 320 to 1920");
        assert_eq!(Fault::InvalidViewport(field).to_string(), "`width` must be an integer from 320 to 1920; got 100.");
        assert_eq!(Field::new("url", "", "present").to_string(), "`url` must be present.");
        let member = Field::new("pdf", "3", "a number from 0.1 to 2").in_member(Some("scale"));
        assert_eq!(member.to_string(), "`pdf.scale` must be a number from 0.1 to 2; got 3.");
    }

    #[test]
    fn received_value_is_shortened_and_printable() {
        let field = Field::new("url", &format!("a\n\0{}", "é".repeat(500)), "x");
        assert!(field.seen.chars().count() <= SEEN_CHARS + 1);
        assert!(field.seen.ends_with('…') && !field.seen.contains(char::is_control));
    }
}
