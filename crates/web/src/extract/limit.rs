//! The rate limits that a page or form counts against.

use grabd_domain::ids::UserId;
use http::HeaderMap;
use http::request::Parts;

use crate::client_ip::ClientIp;
use crate::problem::Problem;
use crate::rate_limits::{AddressLimit, Limit, Limits};
use crate::state::Web;

/// Selects one of the limits by client address, and that of a signed-in user whose network has used it up.
pub(crate) trait FormLimit: Send {
    /// The limit of the address.
    fn of(limits: &Limits) -> &AddressLimit;

    /// The limit of the user.
    fn of_user(limits: &Limits) -> &Limit<UserId> {
        &limits.user_requests
    }
}

/// The limit of pages.
pub(crate) struct PageLimit;

/// The limit of sign-ins, for forms with a password. Each attempt costs a slow hash.
pub(crate) struct PasswordLimit;

/// The limit of forms that send a mail.
pub(crate) struct MailLimit;

/// The limit of forms with the token of a link from a mail.
pub(crate) struct LinkLimit;

/// The limit of sign-ups.
pub(crate) struct SignUpLimit;

/// The limit of trial captures.
pub(crate) struct TrialLimit;

impl FormLimit for PageLimit {
    fn of(limits: &Limits) -> &AddressLimit {
        &limits.pages
    }
}

impl FormLimit for PasswordLimit {
    fn of(limits: &Limits) -> &AddressLimit {
        &limits.sign_ins
    }

    fn of_user(limits: &Limits) -> &Limit<UserId> {
        &limits.user_passwords
    }
}

impl FormLimit for MailLimit {
    fn of(limits: &Limits) -> &AddressLimit {
        &limits.forgotten
    }
}

impl FormLimit for LinkLimit {
    fn of(limits: &Limits) -> &AddressLimit {
        &limits.links
    }
}

impl FormLimit for SignUpLimit {
    fn of(limits: &Limits) -> &AddressLimit {
        &limits.sign_ups
    }
}

impl FormLimit for TrialLimit {
    fn of(limits: &Limits) -> &AddressLimit {
        &limits.trials
    }
}

/// Counts a request against a limit. If others in the network have used that up, a signed-in user has one of their own.
///
/// # Errors
/// When the limits are used up.
pub(super) async fn take<L: FormLimit>(web: &Web, parts: &Parts) -> Result<(), Problem> {
    take_of::<L>(web, ClientIp::of(parts), &parts.headers).await
}

/// Counts a request for a page that visitors may load as well, as [`take`].
///
/// # Errors
/// When the limits are used up.
pub(crate) async fn take_page(web: &Web, client: ClientIp, headers: &HeaderMap) -> Result<(), Problem> {
    take_of::<PageLimit>(web, client, headers).await
}

async fn take_of<L: FormLimit>(web: &Web, ClientIp(client): ClientIp, headers: &HeaderMap) -> Result<(), Problem> {
    let Err(limited) = L::of(&web.limits).take(client) else { return Ok(()) };
    // Bounds the lookups for made-up sessions.
    web.limits.parts.take(client)?;
    match web.signed_in(headers).await? {
        Some(user) => Ok(L::of_user(&web.limits).take(user.session.user.id)?),
        None => Err(limited.into()),
    }
}
