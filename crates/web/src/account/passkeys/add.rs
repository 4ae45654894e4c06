//! `/account/passkeys/new`: adds a passkey. The first form confirms it; the page that follows lets the device create it.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use grabd_domain::accounts::PASSKEYS as MAX_PASSKEYS;
use grabd_engine::accounts::{self, AddPasskeyError, NewPasskeyChallenge};
use http::header::USER_AGENT;
use http::{HeaderMap, StatusCode};

use super::{ADD, NEW};
use crate::account::PATH;
use crate::account::factor_fields::FactorFields;
use crate::account::second_factor::{codes_page, error_status, field_error, with_retry_after};
use crate::extract::{PasswordLimit, SignedInForm, SignedInPage};
use crate::fields::{factor_answer, name_field};
use crate::form::{Field, FieldError};
use crate::page::{Layout, page, page_with};
use crate::paths::PASSKEYS;
use crate::problem::Problem;
use crate::response::see_other;
use crate::session::SignedIn;
use crate::state::Web;
use crate::user_agent::describe;

#[derive(Template)]
#[template(path = "passkey_new.html")]
struct ConfirmPage<'a> {
    layout: Layout,
    form_token: &'a str,
    action: &'static str,
    back: &'static str,
    name: Field,
    factor: FactorFields,
    errors: &'a [FieldError],
}

#[derive(Template)]
#[template(path = "passkey_create.html")]
struct CreatePage<'a> {
    layout: Layout,
    form_token: &'a str,
    action: &'static str,
    back: &'static str,
    token: &'a str,
    options: String,
    is_first_factor: bool,
}

/// Asks for a name and the confirmation.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    SignedInPage(user): SignedInPage,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if !accounts::has_passkeys(&web.core) {
        return Err(Problem::no_passkeys());
    }
    if !user.session.user.verified {
        return Err(Problem::unverified());
    }
    let agent = headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok());
    confirm_page(&web, &user, StatusCode::OK, &describe(agent), &[]).await
}

/// Checks the confirmation, and shows the page that creates the passkey. Each attempt costs a slow hash, so the sign-in
/// limit applies.
pub(crate) async fn confirm(
    State(web): State<Arc<Web>>,
    SignedInForm { user, form, .. }: SignedInForm<PasswordLimit>,
) -> Result<Response, Problem> {
    let (me, name, password) = (&user.session.user, form.get("name"), form.get("password"));
    let is_first_factor = accounts::find_second_factor(&web.core, me.id).await?.is_none();
    let answer = factor_answer(&form);
    let error = match accounts::confirm_new_passkey(&web.core, me, &user.token, name, password, answer).await {
        Ok(NewPasskeyChallenge { token, options }) => {
            let script = Some(web.assets.passkey.path.clone());
            let template = CreatePage {
                layout: Layout { script, ..web.user_layout(&user.session, PATH) },
                form_token: &user.session.csrf,
                action: ADD,
                back: PASSKEYS,
                token: &token,
                options: options.to_string(),
                is_first_factor,
            };
            return Ok(page(StatusCode::OK, &template));
        }
        Err(error) => error,
    };
    let (error, retry_after_s) = match error {
        AddPasskeyError::Name(error) => (FieldError { field: "name", message: format!("The name {error}.") }, None),
        AddPasskeyError::Confirmation(error) => field_error(error)?,
        error @ (AddPasskeyError::Unavailable
        | AddPasskeyError::TooMany
        | AddPasskeyError::Expired
        | AddPasskeyError::Invalid
        | AddPasskeyError::AlreadyAdded
        | AddPasskeyError::Internal(_)) => return Err(problem(error)),
    };
    let response = confirm_page(&web, &user, error_status(retry_after_s), name, &[error]).await?;
    Ok(with_retry_after(response, retry_after_s))
}

/// Adds the passkey that the device created. Shows recovery codes if it turned on the second factor.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    SignedInForm { user, form, .. }: SignedInForm,
) -> Result<Response, Problem> {
    let (me, token, created) = (&user.session.user, form.get("token"), form.get("passkey"));
    match accounts::add_passkey(&web.core, me, &user.token, token, created).await {
        Ok(Some(codes)) => Ok(codes_page(&web, &user.session, true, &codes)),
        Ok(None) => Ok(see_other(&format!("{PASSKEYS}?added"))),
        Err(error) => Err(problem(error)),
    }
}

/// Redirects to the first page when the URL of the form is loaded with GET.
pub(crate) async fn redirect_to_start() -> Response {
    see_other(NEW)
}

fn problem(error: AddPasskeyError) -> Problem {
    match error {
        AddPasskeyError::Unavailable => Problem::no_passkeys(),
        AddPasskeyError::Name(error) => Problem::bad_request("Invalid name", error.to_string(), ""),
        AddPasskeyError::TooMany => Problem::conflict(
            "No more passkeys",
            format!("An account has at most {MAX_PASSKEYS} passkeys."),
            "Remove one to add another.",
        ),
        AddPasskeyError::Confirmation(error) => match field_error(error) {
            Ok((FieldError { message, .. }, _)) => Problem::bad_request("Not confirmed", message, ""),
            Err(problem) => problem,
        },
        AddPasskeyError::Expired => Problem::bad_request(
            "The confirmation has expired",
            "It was given more than five minutes ago, was used before, or your second factor was changed since.",
            "Remove the new passkey from your device, and start over.",
        ),
        AddPasskeyError::Invalid => Problem::bad_request(
            "The passkey was not accepted",
            "It was not created for this page, or your device did not ask for a fingerprint, your face or a PIN.",
            "Remove the new passkey from your device, and start over.",
        ),
        AddPasskeyError::AlreadyAdded => {
            Problem::conflict("This passkey was added before", "Nothing was changed.", "See your list of passkeys.")
        }
        AddPasskeyError::Internal(error) => error.into(),
    }
}

async fn confirm_page(
    web: &Web,
    user: &SignedIn,
    status: StatusCode,
    name: &str,
    errors: &[FieldError],
) -> Result<Response, Problem> {
    let factor = FactorFields::of(web, user.session.user.id, errors).await?;
    let template = ConfirmPage {
        layout: factor.layout(web, web.user_layout(&user.session, PATH)),
        form_token: &user.session.csrf,
        action: NEW,
        back: PASSKEYS,
        name: name_field("Name", "For your list, such as the device.", None, errors).with_value(name),
        factor,
        errors,
    };
    Ok(page_with(template.factor.csp(), status, &template))
}
