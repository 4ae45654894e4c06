//! What people see instead of the page they asked for: what is wrong, and what they can do.

use askama::Template;
use axum::response::{IntoResponse, Response};
use grabd_domain::Fault;
use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderValue, StatusCode};

use crate::Web;
use crate::form::Unreadable;
use crate::limits::Spent;
use crate::page::{Frame, page};

/// A page about a problem, on its way to be put into its frame.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    title: &'static str,
    message: String,
    advice: &'static str,
    retry_after_s: Option<u64>,
}

impl Problem {
    /// A request that cannot be honoured as it is.
    pub(crate) fn bad_request(title: &'static str, message: impl Into<String>, advice: &'static str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, title, message, advice)
    }

    /// Nothing there, or nothing that this person may see.
    pub(crate) fn not_found(message: &'static str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "There is no such page", message, "")
    }

    /// A link that was mailed to somebody, and opens nothing.
    pub(crate) fn link_is_over(advice: &'static str) -> Self {
        let message = "It was used already, was taken back, has waited for too long, or was cut off on its way to you.";
        Self::new(StatusCode::NOT_FOUND, "This link does not count", message, advice)
    }

    /// Something that this person may see, and may not do.
    pub(crate) fn not_allowed(title: &'static str, message: &'static str, advice: &'static str) -> Self {
        Self::new(StatusCode::FORBIDDEN, title, message, advice)
    }

    /// Something that cannot be done as things are.
    pub(crate) fn in_the_way(title: &'static str, message: &'static str, advice: &'static str) -> Self {
        Self::new(StatusCode::CONFLICT, title, message, advice)
    }

    /// A form that did not come from the page it should have come from.
    pub(crate) fn forged() -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "This form cannot be accepted",
            "It was open for too long, was sent from another site, or your browser keeps no cookies.",
            "Nothing was changed. Open the page anew and send it again.",
        )
    }

    /// Somebody who should have been signed in.
    pub(crate) fn signed_out() -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "You are signed out",
            "Your session ended before this form was sent.",
            "Nothing was changed. Sign in and begin again where you came from.",
        )
    }

    /// A method that the path does not know.
    pub(crate) fn method_not_allowed() -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "This cannot be done here",
            "The address is right, but it takes requests of another kind.",
            "",
        )
    }

    /// Somebody who has begun too many purchases.
    pub(crate) fn purchases_spent(Spent { retry_after_s }: Spent) -> Self {
        let message = format!("You have begun many purchases. You may begin another in {}.", wait(retry_after_s));
        let advice = "Nothing was charged now. What you have paid already is not lost.";
        let status = StatusCode::TOO_MANY_REQUESTS;
        Self { retry_after_s: Some(retry_after_s), ..Self::new(status, "Too many purchases", message, advice) }
    }

    /// A purchase that could not be begun because Stripe gave no page to pay on.
    pub(crate) fn no_page_to_pay_on() -> Self {
        Self::new(
            StatusCode::BAD_GATEWAY,
            "You cannot pay just now",
            "Stripe, where you would pay, gave no page for it. Nothing was charged.",
            "Try again in a minute. If it stays, tell whoever runs this grabd.",
        )
    }

    fn new(status: StatusCode, title: &'static str, message: impl Into<String>, advice: &'static str) -> Self {
        Self { status, title, message: message.into(), advice, retry_after_s: None }
    }

    /// The page itself, with the navigation of whoever asked with these headers.
    pub(crate) async fn show(&self, web: &Web, asked: &HeaderMap) -> Response {
        let Self { status, title, message, advice, retry_after_s } = self;
        let signed_in = match retry_after_s {
            // Whoever asks too often is not looked up as well.
            Some(_) => None,
            // A fault may be about looking people up.
            None => web.signed_in(asked).await.unwrap_or_default(),
        };
        let frame = signed_in.map_or_else(|| web.plain_frame(), |person| web.frame_of(&person.session, ""));
        let mut response = page(*status, &ProblemPage { frame, title, message, advice });
        if let Some(seconds) = retry_after_s {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(*seconds));
        }
        response
    }
}

#[derive(Template)]
#[template(path = "problem.html")]
struct ProblemPage<'a> {
    frame: Frame,
    title: &'a str,
    message: &'a str,
    advice: &'a str,
}

impl IntoResponse for Problem {
    /// Bare: the layer around the pages knows the frame, and shows it there.
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl From<Spent> for Problem {
    fn from(Spent { retry_after_s }: Spent) -> Self {
        let wait = wait(retry_after_s);
        let message = format!("Your network has asked for this too often. It may again in {wait}.");
        let title = "Too many requests";
        Self { retry_after_s: Some(retry_after_s), ..Self::new(StatusCode::TOO_MANY_REQUESTS, title, message, "") }
    }
}

impl From<Unreadable> for Problem {
    fn from(why: Unreadable) -> Self {
        Self::bad_request("This form cannot be read", why.to_string(), "Nothing was changed.")
    }
}

impl From<Fault> for Problem {
    /// What is about a field, pages say beside it. The rest the engine has logged, and people can do nothing about it.
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::RateLimitExceeded { retry_after_s, .. } => Self::team_spent(retry_after_s),
            Fault::NotFound { .. } | Fault::Unauthorized => {
                Self::not_found("There is nothing at this address for you.")
            }
            Fault::BadRequest(_)
            | Fault::InvalidViewport(_)
            | Fault::SsrfDetected(_)
            | Fault::IdempotencyMismatch(_)
            | Fault::CreditsExhausted
            | Fault::IdempotencyConflict
            | Fault::RenderBlocked(_)
            | Fault::QueueLimitExceeded { .. }
            | Fault::RenderFailed(_)
            | Fault::InternalError => Self::ours(),
        }
    }
}

impl Problem {
    fn team_spent(retry_after_s: u64) -> Self {
        let message = format!("Your team has asked for this too often. It may again in {}.", wait(retry_after_s));
        let advice = "The pages and the keys of a team share one limit for each environment.";
        let status = StatusCode::TOO_MANY_REQUESTS;
        Self { retry_after_s: Some(retry_after_s), ..Self::new(status, "Too many requests", message, advice) }
    }

    fn ours() -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "Something went wrong",
            "The fault is on our side.",
            "Try again. If it stays, tell whoever runs this grabd what you were doing, and when.",
        )
    }
}

/// A wait as people say it, rounded up.
pub(crate) fn wait(seconds: u64) -> String {
    let (count, unit) = match seconds {
        0..=90 => (seconds, "second"),
        91..=5400 => (seconds.div_ceil(60), "minute"),
        5401.. => (seconds.div_ceil(3600), "hour"),
    };
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_said_in_the_unit_that_fits() {
        for (seconds, said) in
            [(1, "1 second"), (90, "90 seconds"), (91, "2 minutes"), (3600, "60 minutes"), (5401, "2 hours")]
        {
            assert_eq!(wait(seconds), said);
        }
    }
}
