//! `/sign-in/passkey`: signs in with a passkey, instead of a password or as the second step after it.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use grabd_engine::accounts::{self, PasskeyChallenge, PasskeyError, PasskeySignInError};
use http::StatusCode;
use serde_json::json;

use super::{code, next, start_session, with_password};
use crate::client_ip::ClientIp;
use crate::extract::VisitorForm;
use crate::fields::{passkey_answer, passkey_message};
use crate::form::FieldError;
use crate::paths::SIGN_IN;
use crate::problem::Problem;
use crate::response::see_other;
use crate::state::Web;

/// The field of the form on the page that asks for the second factor.
const SECOND_STEP: &str = "second_step";

/// Returns a challenge as JSON, for the script. It is the same for everybody, and nothing is stored.
pub(crate) async fn challenge(State(web): State<Arc<Web>>, client: ClientIp) -> Result<Response, Problem> {
    web.limits.pages.take(client.0)?;
    match accounts::new_passkey_challenge(&web.core) {
        Ok(PasskeyChallenge { token, options }) => {
            Ok(Json(json!({ "token": token, "options": options })).into_response())
        }
        Err(PasskeyError::Internal(error)) => Err(error.into()),
        Err(
            PasskeyError::Unavailable
            | PasskeyError::Expired
            | PasskeyError::Unknown
            | PasskeyError::Invalid
            | PasskeyError::AlreadyUsed,
        ) => Err(Problem::no_passkeys()),
    }
}

/// Redirects to the sign-in page when the URL of the form is loaded with GET.
pub(crate) async fn redirect_to_page() -> Response {
    see_other(SIGN_IN)
}

/// Signs in. A passkey cannot be guessed, so failures are not counted for the account.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    VisitorForm { client, headers, form: input, .. }: VisitorForm,
) -> Result<Response, Problem> {
    let pending = match (input.has(SECOND_STEP), code::pending(&web, &headers)) {
        (false, _) => None,
        (true, None) => return Ok(code::start_again(&web, &input)),
        (true, Some(pending)) => Some(pending),
    };
    let (status, message) =
        match accounts::sign_in_with_passkey(&web.core, pending.as_ref(), passkey_answer(&input)).await {
            Ok(token) => return start_session(&web, client, &headers, &token, &next(&input)).await,
            Err(PasskeySignInError::Expired) => return Ok(code::start_again(&web, &input)),
            Err(PasskeySignInError::Suspended) => (StatusCode::FORBIDDEN, with_password::SUSPENDED),
            Err(PasskeySignInError::Passkey(error)) => (StatusCode::UNPROCESSABLE_ENTITY, passkey_message(error)?),
            Err(PasskeySignInError::Internal(error)) => return Err(error.into()),
        };
    let errors = [FieldError { field: "", message: message.to_owned() }];
    let Some(pending) = pending else { return Ok(with_password::form(&web, &headers, status, &input, &errors)) };
    match accounts::find_pending_sign_in(&web.core, &pending).await? {
        Some(user) => Ok(code::form(&web, &headers, status, &user, &input, &errors)),
        None => Ok(code::start_again(&web, &input)),
    }
}
