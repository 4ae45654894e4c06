//! `/account/password`: changes the password.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use grabd_engine::accounts::{self, ChangePasswordError};
use http::header::RETRY_AFTER;
use http::{HeaderValue, StatusCode};

use super::PATH;
use super::show::account;
use crate::extract::{PasswordLimit, SignedInForm};
use crate::fields::password_message;
use crate::form::FieldError;
use crate::problem::Problem;
use crate::response::see_other;
use crate::state::Web;
use crate::time_format::wait;

/// Changes the password. Each attempt costs a slow hash, so the sign-in limit applies.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    SignedInForm { user, form, .. }: SignedInForm<PasswordLimit>,
) -> Result<Response, Problem> {
    let me = &user.session.user;
    let (current, new) = (form.get("current"), form.get("new"));
    let (field, message, retry_after_s) = match accounts::change_password(&web.core, me, &user.token, current, new)
        .await
    {
        Ok(()) => return Ok(see_other(&format!("{PATH}?changed"))),
        Err(ChangePasswordError::WrongPassword) => ("current", "The current password is wrong.".to_owned(), None),
        Err(ChangePasswordError::InvalidNewPassword(error)) => ("new", password_message(error), None),
        Err(ChangePasswordError::TooMany { retry_after_s }) => {
            let message = format!("Too many wrong passwords for your account. Try again in {}.", wait(retry_after_s));
            ("current", message, Some(retry_after_s))
        }
        Err(ChangePasswordError::Internal(error)) => return Err(error.into()),
    };
    let errors = [FieldError { field, message }];
    let status = match retry_after_s {
        Some(_) => StatusCode::TOO_MANY_REQUESTS,
        None => StatusCode::UNPROCESSABLE_ENTITY,
    };
    let mut response = account(&web, &user, status, "", &errors).await?;
    if let Some(seconds) = retry_after_s {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    Ok(response)
}
