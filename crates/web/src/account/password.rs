//! `/account/password`

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use grabd_engine::accounts::{self, ChangePasswordError};
use http::header::RETRY_AFTER;
use http::{HeaderValue, StatusCode};

use super::PATH;
use super::show::account;
use crate::Web;
use crate::accounts::sign_up::wanted;
use crate::form::Complaint;
use crate::frame::{Client, see_other};
use crate::problem::{Problem, wait};
use crate::sent::Sent;

/// Changes it. Each try costs a slow hash, so the limit is that of the sign-in.
pub(crate) async fn submit(State(web): State<Arc<Web>>, client: Client, request: Request) -> Result<Response, Problem> {
    let Sent { person, form } = web.sent(&web.limits.sign_ins, client, request).await?;
    let me = &person.session.person;
    let (current, new) = (form.one("current"), form.one("new"));
    let (field, message, retry_after_s) = match accounts::change_password(&web.core, me, &person.token, current, new)
        .await
    {
        Ok(()) => return Ok(see_other(&format!("{PATH}?changed"))),
        Err(ChangePasswordError::Wrong) => ("current", "The current password is wrong.".to_owned(), None),
        Err(ChangePasswordError::New(error)) => ("new", wanted(error), None),
        Err(ChangePasswordError::TooMany { retry_after_s }) => {
            let message = format!("Too many wrong passwords for your account. Try again in {}.", wait(retry_after_s));
            ("current", message, Some(retry_after_s))
        }
        Err(ChangePasswordError::Inside(fault)) => return Err(fault.into()),
    };
    let errors = [Complaint { field, message }];
    let status = match retry_after_s {
        Some(_) => StatusCode::TOO_MANY_REQUESTS,
        None => StatusCode::UNPROCESSABLE_ENTITY,
    };
    let mut response = account(&web, &person, status, "", &errors).await?;
    if let Some(seconds) = retry_after_s {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    Ok(response)
}
