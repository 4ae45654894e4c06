//! `/account/second-factor/off`: turns the second factor off. The confirmation page also serves new recovery codes.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use grabd_engine::accounts;
use http::StatusCode;

use super::{OFF, error_status, field_error, with_retry_after};
use crate::account::PATH;
use crate::account::factor_fields::FactorFields;
use crate::extract::{PasswordLimit, SignedInForm, SignedInPage};
use crate::fields::factor_answer;
use crate::form::FieldError;
use crate::page::{Layout, page_with};
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
    factor: FactorFields,
    errors: &'a [FieldError],
}

const CONFIRMATION: Confirmation = Confirmation {
    title: "Turn off the second factor?",
    consequence: "Your password is then enough to sign in. Your passkeys and recovery codes stop working.",
    button: "Turn off",
    is_bad: true,
    action: OFF,
};

/// Asks for the password and a code.
pub(crate) async fn show(State(web): State<Arc<Web>>, SignedInPage(user): SignedInPage) -> Result<Response, Problem> {
    if !is_on(&web, &user).await? {
        return Ok(see_other(SECOND_FACTOR));
    }
    confirm_page(&web, &user, &CONFIRMATION, StatusCode::OK, &[]).await
}

/// Turns the second factor off. Each attempt costs a slow hash, so the sign-in limit applies.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    SignedInForm { user, form, .. }: SignedInForm<PasswordLimit>,
) -> Result<Response, Problem> {
    let (me, password, answer) = (&user.session.user, form.get("password"), factor_answer(&form));
    let error = match accounts::turn_off_second_factor(&web.core, me, &user.token, password, answer).await {
        Ok(()) => return Ok(see_other(&format!("{PATH}?second-factor-off"))),
        Err(error) => error,
    };
    let (error, retry_after_s) = field_error(error)?;
    let response = confirm_page(&web, &user, &CONFIRMATION, error_status(retry_after_s), &[error]).await?;
    Ok(with_retry_after(response, retry_after_s))
}

/// Whether the user has a second factor.
///
/// # Errors
/// When the lookup fails.
pub(super) async fn is_on(web: &Web, user: &SignedIn) -> Result<bool, Problem> {
    Ok(accounts::find_second_factor(&web.core, user.session.user.id).await?.is_some())
}

/// Renders the form with the password, and a code or a passkey.
///
/// # Errors
/// When the lookup fails.
pub(super) async fn confirm_page(
    web: &Web,
    user: &SignedIn,
    confirmation: &Confirmation,
    status: StatusCode,
    errors: &[FieldError],
) -> Result<Response, Problem> {
    let factor = FactorFields::of(web, user.session.user.id, errors).await?;
    let template = ConfirmPage {
        layout: factor.layout(web, web.user_layout(&user.session, PATH)),
        form_token: &user.session.csrf,
        confirmation,
        back: SECOND_FACTOR,
        factor,
        errors,
    };
    Ok(page_with(template.factor.csp(), status, &template))
}
