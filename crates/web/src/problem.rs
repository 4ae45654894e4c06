//! Error pages: what went wrong, and what the user can do.

use askama::Template;
use axum::response::{IntoResponse, Response};
use grabd_domain::Fault;
use grabd_domain::limits::OUTAGE_RETRY;
use grabd_engine::Error;
use grabd_engine::grabs::ArchiveError;
use http::header::RETRY_AFTER;
use http::{HeaderValue, StatusCode};

use crate::form::FormError;
use crate::page::{Layout, page};
use crate::rate_limits::RateLimited;
use crate::time_format::wait;

/// An error page that is not rendered yet.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    title: &'static str,
    message: String,
    advice: &'static str,
    retry_after_s: Option<u64>,
    /// The addresses of those who can help. Only for members of their team.
    owners: Vec<String>,
    /// Whether the page is a red banner.
    is_alert: bool,
}

impl Problem {
    /// An invalid request.
    pub(crate) fn bad_request(title: &'static str, message: impl Into<String>, advice: &'static str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, title, message, advice)
    }

    /// The page does not exist, or this user may not see it.
    pub(crate) fn not_found(message: &'static str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "Page not found", message, "")
    }

    /// A link from a mail that is used, withdrawn, expired or incomplete.
    pub(crate) fn invalid_link(advice: &'static str) -> Self {
        let message = "It was already used, revoked, has expired, or is incomplete.";
        Self::new(StatusCode::NOT_FOUND, "This link is no longer valid", message, advice)
    }

    /// The user may see the page but may not do this.
    pub(crate) fn not_allowed(title: &'static str, message: &'static str, advice: &'static str) -> Self {
        Self::new(StatusCode::FORBIDDEN, title, message, advice)
    }

    /// The role of the user does not allow this. `needed` names the roles that do, and `owners` are the addresses of the team's
    /// owners, of which the user is a member.
    pub(crate) fn role_needed(own: &str, needed: &str, owners: Vec<String>) -> Self {
        let message = format!("Your role in this team is {own}. This needs the role {needed}.");
        let advice = "Nothing was changed. An owner of the team can change your role.";
        let status = StatusCode::FORBIDDEN;
        Self { owners, ..Self::new(status, "Your role does not allow this", message, advice) }
    }

    /// The action needs a verified e-mail address.
    pub(crate) fn unverified() -> Self {
        Self::not_allowed(
            "Verify your e-mail address first",
            "Teams, live keys, invitations, purchases and a second factor need a verified e-mail address.",
            "Nothing was changed. Open the link in the e-mail that was sent to you, or request another one above.",
        )
    }

    /// The action conflicts with the current state.
    pub(crate) fn conflict(title: &'static str, message: impl Into<String>, advice: &'static str) -> Self {
        Self::new(StatusCode::CONFLICT, title, message, advice)
    }

    /// The URL of the web app does not allow passkeys.
    pub(crate) fn no_passkeys() -> Self {
        Self::not_allowed(
            "Passkeys are not available",
            "Browsers allow passkeys only for a web app with TLS and a host name.",
            "Use your password.",
        )
    }

    /// The team is suspended.
    pub(crate) fn team_suspended() -> Self {
        let problem = Self::new(
            StatusCode::FORBIDDEN,
            "This team is suspended",
            "Its keys, apps and pages do not work. Its images stay available.",
            "Contact your administrator.",
        );
        Self { is_alert: true, ..problem }
    }

    /// A form that failed the CSRF check.
    pub(crate) fn csrf_failed() -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "This form has expired",
            "It was open for too long, was sent from another site, or your browser blocks cookies.",
            "Nothing was changed. Reload the page and submit the form again.",
        )
    }

    /// The session ended before the form was sent.
    pub(crate) fn signed_out() -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "You have been signed out",
            "Your session ended before the form was submitted.",
            "Nothing was changed. Sign in and try again.",
        )
    }

    /// The path does not support the method.
    pub(crate) fn method_not_allowed() -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "Method not allowed",
            "This page does not accept this kind of request.",
            "",
        )
    }

    /// The user has started too many purchases.
    pub(crate) fn too_many_purchases(RateLimited { retry_after_s }: RateLimited) -> Self {
        let message = format!("You have started many purchases. Try again in {}.", wait(retry_after_s));
        let advice = "Nothing was charged now. Earlier payments are not affected.";
        let status = StatusCode::TOO_MANY_REQUESTS;
        Self { retry_after_s: Some(retry_after_s), ..Self::new(status, "Too many purchases", message, advice) }
    }

    /// The user has made too many changes.
    pub(crate) fn too_many_changes(RateLimited { retry_after_s }: RateLimited) -> Self {
        let message =
            format!("You have changed your account and teams very often today. Try again in {}.", wait(retry_after_s));
        let advice = "Nothing was changed now. Your captures are not affected.";
        let status = StatusCode::TOO_MANY_REQUESTS;
        Self { retry_after_s: Some(retry_after_s), ..Self::new(status, "Too many changes", message, advice) }
    }

    /// Stripe did not return a checkout page.
    pub(crate) fn checkout_unavailable() -> Self {
        Self::new(
            StatusCode::BAD_GATEWAY,
            "Payment is not available",
            "The payment provider did not respond. Nothing was charged.",
            "Try again in a minute. If the problem persists, contact your administrator.",
        )
    }

    /// There is no archive or export for now.
    pub(crate) fn no_archive(error: ArchiveError) -> Self {
        const RETRY_AFTER_S: u64 = 30;
        let (message, advice) = match error {
            ArchiveError::AccountBusy => (
                "Another file of your team is being downloaded.",
                "Try again when it is complete. The teams of one owner have one download at a time.",
            ),
            ArchiveError::Busy => ("Many files are being downloaded at the moment.", "Try again in half a minute."),
            ArchiveError::Internal(error) => return error.into(),
        };
        let status = StatusCode::TOO_MANY_REQUESTS;
        Self { retry_after_s: Some(RETRY_AFTER_S), ..Self::new(status, "One download at a time", message, advice) }
    }

    /// No browser is free for a sample, or it failed.
    pub(crate) fn sample_unavailable() -> Self {
        let status = StatusCode::SERVICE_UNAVAILABLE;
        let message = "The sample cannot be captured at the moment.";
        Self::new(status, "No capture at the moment", message, "Try again in a few seconds.")
    }

    fn new(status: StatusCode, title: &'static str, message: impl Into<String>, advice: &'static str) -> Self {
        Self {
            status,
            title,
            message: message.into(),
            advice,
            retry_after_s: None,
            owners: Vec::new(),
            is_alert: false,
        }
    }

    /// The seconds until the next request is allowed, if there were too many.
    pub(crate) const fn retry_after_s(&self) -> Option<u64> {
        self.retry_after_s
    }

    /// Renders the page.
    pub(crate) fn render(&self, layout: Layout) -> Response {
        let Self { status, title, message, advice, retry_after_s, owners, is_alert } = self;
        let owners = owners.join(", ");
        let (is_alert, is_ours) = (*is_alert, status.is_server_error());
        let mut response = page(*status, &ProblemPage { layout, title, message, advice, owners, is_alert, is_ours });
        if let Some(seconds) = retry_after_s {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(*seconds));
        }
        response
    }
}

#[derive(Template)]
#[template(path = "problem.html")]
struct ProblemPage<'a> {
    layout: Layout,
    title: &'a str,
    message: &'a str,
    advice: &'a str,
    /// The addresses of those who can help. Empty if there are none.
    owners: String,
    is_alert: bool,
    /// Whether the service has failed, and not the request.
    is_ours: bool,
}

impl IntoResponse for Problem {
    /// Without a body: the middleware of the pages renders it, because rendering needs the shared state.
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl From<RateLimited> for Problem {
    fn from(RateLimited { retry_after_s }: RateLimited) -> Self {
        let wait = wait(retry_after_s);
        let message = format!("Too many requests from your network. Try again in {wait}.");
        let title = "Too many requests";
        Self { retry_after_s: Some(retry_after_s), ..Self::new(StatusCode::TOO_MANY_REQUESTS, title, message, "") }
    }
}

impl From<FormError> for Problem {
    fn from(error: FormError) -> Self {
        Self::bad_request("This form is invalid", error.to_string(), "Nothing was changed.")
    }
}

impl From<Error> for Problem {
    /// What went wrong inside is logged here.
    fn from(error: Error) -> Self {
        error.into_fault().into()
    }
}

impl From<Fault> for Problem {
    /// Pages show faults about a field beside it. The user can do nothing about all others.
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::RateLimitExceeded { retry_after_s, .. }
            | Fault::WaitLimitExceeded { retry_after_s, .. }
            | Fault::FailedRenderTimeExceeded { retry_after_s, .. } => Self::team_rate_limited(retry_after_s),
            Fault::QueueTooLong { wait_s } => Self::team_rate_limited(wait_s),
            Fault::ImagesBusy { retry_after_s } => Self::images_busy(retry_after_s),
            Fault::TeamSuspended => Self::team_suspended(),
            Fault::Unavailable => Self::outage(),
            Fault::NotFound { .. }
            | Fault::Unauthorized
            | Fault::LinkRefused(_)
            | Fault::KeyExpired { .. }
            | Fault::Forbidden { .. } => Self::not_found("This page does not exist, or you do not have access to it."),
            Fault::BadRequest(_)
            | Fault::InvalidViewport(_)
            | Fault::SsrfDetected(_)
            | Fault::IdempotencyMismatch(_)
            | Fault::CreditsExhausted
            | Fault::IdempotencyConflict
            | Fault::RenderBlocked(_)
            | Fault::QueueLimitExceeded { .. }
            | Fault::StorageFull
            | Fault::TeamStorageFull { .. }
            | Fault::AccountStorageFull { .. }
            | Fault::RenderFailed(_)
            | Fault::InternalError => Self::internal_error(),
        }
    }
}

impl Problem {
    fn team_rate_limited(retry_after_s: u64) -> Self {
        let message = format!("Too many requests from your team. Try again in {}.", wait(retry_after_s));
        let advice = "The web application and the API keys of a team share one limit per environment.";
        let status = StatusCode::TOO_MANY_REQUESTS;
        Self { retry_after_s: Some(retry_after_s), ..Self::new(status, "Too many requests", message, advice) }
    }

    fn images_busy(retry_after_s: u64) -> Self {
        let wait = wait(retry_after_s);
        let message = format!("Too many images are being processed at the moment. Try again in {wait}.");
        let status = StatusCode::TOO_MANY_REQUESTS;
        Self { retry_after_s: Some(retry_after_s), ..Self::new(status, "Too many images", message, "") }
    }

    fn outage() -> Self {
        let retry_after_s = OUTAGE_RETRY.as_secs();
        let message = format!("The service cannot reach its database. Try again in {}.", wait(retry_after_s));
        let status = StatusCode::SERVICE_UNAVAILABLE;
        Self { retry_after_s: Some(retry_after_s), ..Self::new(status, "Not available at the moment", message, "") }
    }

    fn internal_error() -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "Something went wrong",
            "This is an error on our side.",
            "Try again. If the problem persists, contact your administrator and say what you were doing and when.",
        )
    }
}
