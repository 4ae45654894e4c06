//! The rate limits by client address that a form can count against.

use http::request::Parts;

use crate::client_ip::ClientIp;
use crate::limits::{Limit, Limits, RateLimited};

/// Selects one of the limits.
pub(crate) trait FormLimit: Send {
    /// The limit.
    fn of(limits: &Limits) -> &Limit;
}

/// The limit of pages.
pub(crate) struct PageLimit;

/// The limit of sign-ins, for forms with a password. Each attempt costs a slow hash.
pub(crate) struct PasswordLimit;

/// The limit of forms that send a mail.
pub(crate) struct MailLimit;

impl FormLimit for PageLimit {
    fn of(limits: &Limits) -> &Limit {
        &limits.pages
    }
}

impl FormLimit for PasswordLimit {
    fn of(limits: &Limits) -> &Limit {
        &limits.sign_ins
    }
}

impl FormLimit for MailLimit {
    fn of(limits: &Limits) -> &Limit {
        &limits.forgotten
    }
}

/// Counts a request against a limit.
///
/// # Errors
/// When the limit of its address is used up.
pub(super) fn take(limit: &Limit, parts: &Parts) -> Result<(), RateLimited> {
    limit.take(ClientIp::of(parts).0)
}
