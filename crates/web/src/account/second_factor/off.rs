//! `/account/second-factor/off`: turns the second factor off. The confirmation page also serves new recovery codes.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use grabd_engine::accounts;
use http::StatusCode;

use super::{OFF, error_status, field_error, with_retry_after};
use crate::account::PATH;
use crate::extract::{PasswordLimit, SignedInForm, SignedInPage};
use crate::fields::{any_code_field, password_field};
use crate::form::{Field, FieldError};
use crate::page::{Layout, page};
use crate::paths::SECOND_FACTOR;
use crate::problem::Problem;
use crate::response::see_other;
use crate::session::SignedIn;
use crate::state::Web;

/// A change that needs the password and a code.
pub(super) struct Confirmation {
    pub(super) title: &'static str,
    /// One sentence.
    pub(super) consequence: &'static str,
    pub(super) button: &'static str,
    pub(super) is_bad: bool,
    pub(super) action: &'static str,
}

#[derive(Template)]
#[template(path = "second_factor_confirm.html")]
struct ConfirmPage<'a> {
    layout: Layout,
    form_token: &'a str,
    confirmation: &'a Confirmation,
    back: &'static str,
    code: Field,
    password: Field,
    errors: &'a [FieldError],
}

const CONFIRMATION: Confirmation = Confirmation {
    title: "Turn off the second factor?",
    consequence: "Your password is then enough to sign in. Your recovery codes stop working.",
    button: "Turn off",
    is_bad: true,
    action: OFF,
};

/// Asks for the password and a code.
pub(crate) async fn show(State(web): State<Arc<Web>>, SignedInPage(person): SignedInPage) -> Result<Response, Problem> {
    if !is_on(&web, &person).await? {
        return Ok(see_other(SECOND_FACTOR));
    }
    Ok(confirm_page(&web, &person, &CONFIRMATION, StatusCode::OK, &[]))
}

/// Turns the second factor off. Each attempt costs a slow hash, so the sign-in limit applies.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    SignedInForm { person, form, .. }: SignedInForm<PasswordLimit>,
) -> Result<Response, Problem> {
    let (me, password, code) = (&person.session.person, form.get("password"), form.get("code"));
    let error = match accounts::turn_off_second_factor(&web.core, me, &person.token, password, code).await {
        Ok(()) => return Ok(see_other(&format!("{PATH}?second-factor-off"))),
        Err(error) => error,
    };
    let (error, retry_after_s) = field_error(error)?;
    let response = confirm_page(&web, &person, &CONFIRMATION, error_status(retry_after_s), &[error]);
    Ok(with_retry_after(response, retry_after_s))
}

/// Whether the user has a second factor.
///
/// # Errors
/// When the lookup fails.
pub(super) async fn is_on(web: &Web, person: &SignedIn) -> Result<bool, Problem> {
    Ok(accounts::find_second_factor(&web.core, person.session.person.id).await?.is_some())
}

/// Renders the form with the password and a code.
pub(super) fn confirm_page(
    web: &Web,
    person: &SignedIn,
    confirmation: &Confirmation,
    status: StatusCode,
    errors: &[FieldError],
) -> Response {
    let template = ConfirmPage {
        layout: web.user_layout(&person.session, PATH),
        form_token: &person.session.csrf,
        confirmation,
        back: SECOND_FACTOR,
        code: any_code_field(errors),
        password: password_field("current-password", "", errors),
        errors,
    };
    page(status, &template)
}
