//! `/account/second-factor`: the second factor of a user, one file per page.

pub(crate) mod app;
pub(crate) mod codes;
pub(crate) mod off;
pub(crate) mod show;

use askama::Template;
use axum::response::Response;
use grabd_engine::accounts::{CodeError, SecondFactorError, Session};
use http::header::RETRY_AFTER;
use http::{HeaderValue, StatusCode};

use super::PATH;
use crate::fields::{code_error, password_error};
use crate::form::FieldError;
use crate::page::{Layout, page};
use crate::paths::SECOND_FACTOR;
use crate::problem::Problem;
use crate::state::Web;

/// The path of the form that sets an authenticator app.
pub(crate) const APP: &str = "/account/second-factor/app";
/// The path of the form for new recovery codes.
pub(crate) const CODES: &str = "/account/second-factor/recovery-codes";
/// The path of the form that turns the second factor off.
pub(crate) const OFF: &str = "/account/second-factor/off";

#[derive(Template)]
#[template(path = "recovery_codes.html")]
struct CodesPage {
    layout: Layout,
    is_first: bool,
    count: usize,
    codes: String,
    back: &'static str,
}

/// Shows recovery codes, for the only time.
pub(super) fn codes_page(web: &Web, session: &Session, is_first: bool, codes: &[String]) -> Response {
    let script = Some(web.assets.copy.path.clone());
    let layout = Layout { script, ..web.user_layout(session, PATH) };
    let template = CodesPage { layout, is_first, count: codes.len(), codes: codes.join("\n"), back: SECOND_FACTOR };
    page(StatusCode::OK, &template)
}

/// The error beside its field, and the seconds to wait if there were too many tries.
///
/// # Errors
/// Errors that are not about a field.
pub(super) fn field_error(error: SecondFactorError) -> Result<(FieldError, Option<u64>), Problem> {
    match error {
        SecondFactorError::Password(error) => password_error(error),
        SecondFactorError::Code(error) => code_error(error),
        SecondFactorError::AppCode(error) => {
            let is_malformed = error == CodeError::Malformed;
            let (FieldError { message, .. }, retry_after_s) = code_error(error)?;
            // It cannot be a recovery code.
            let message = if is_malformed { "Enter the 6 digits that the new app shows.".to_owned() } else { message };
            Ok((FieldError { field: "app_code", message }, retry_after_s))
        }
        SecondFactorError::SetupExpired => Err(Problem::bad_request(
            "The set-up has expired",
            "The page was open for more than an hour.",
            "Remove the entry from your authenticator app, open the page of your second factor again, and start over.",
        )),
        SecondFactorError::AlreadyOn => {
            Err(Problem::conflict("The second factor is on already", "Nothing was changed.", "See your account page."))
        }
        SecondFactorError::Unverified => Err(Problem::unverified()),
        SecondFactorError::UnknownPasskey => Err(Problem::not_found("This passkey does not exist, or was removed.")),
        SecondFactorError::Internal(error) => Err(error.into()),
    }
}

/// The status of a form with an error.
pub(super) const fn error_status(retry_after_s: Option<u64>) -> StatusCode {
    match retry_after_s {
        Some(_) => StatusCode::TOO_MANY_REQUESTS,
        None => StatusCode::UNPROCESSABLE_ENTITY,
    }
}

pub(super) fn with_retry_after(mut response: Response, retry_after_s: Option<u64>) -> Response {
    if let Some(seconds) = retry_after_s {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}
