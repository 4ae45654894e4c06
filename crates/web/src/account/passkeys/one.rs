//! `/account/passkeys/{passkey}`: renames and removes a passkey.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use grabd_domain::ids::PasskeyId;
use grabd_engine::accounts::{self, PasskeyInfo, RenamePasskeyError};
use http::StatusCode;

use crate::account::PATH;
use crate::account::factor_fields::FactorFields;
use crate::account::second_factor::{error_status, field_error, with_retry_after};
use crate::extract::{PasswordLimit, SignedInForm, SignedInPage};
use crate::fields::{factor_answer, name_field};
use crate::form::{Field, FieldError};
use crate::page::{Layout, page_with};
use crate::paths::PASSKEYS;
use crate::problem::Problem;
use crate::response::see_other;
use crate::session::SignedIn;
use crate::state::Web;

#[derive(Template)]
#[template(path = "passkey.html")]
struct PasskeyPage<'a> {
    layout: Layout,
    form_token: &'a str,
    path: String,
    back: &'static str,
    /// The name that is stored.
    current: String,
    is_last_factor: bool,
    name: Field,
    factor: FactorFields,
    errors: &'a [FieldError],
}

/// Shows the page.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    SignedInPage(user): SignedInPage,
    Path(passkey): Path<String>,
) -> Result<Response, Problem> {
    one(&web, &user, parse(&passkey)?, StatusCode::OK, None, &[]).await
}

/// Redirects to the page when the URL of a form is loaded with GET.
pub(crate) async fn redirect_to_page(Path(passkey): Path<String>) -> Result<Response, Problem> {
    Ok(see_other(&format!("{PASSKEYS}/{}", parse(&passkey)?)))
}

/// Renames the passkey.
pub(crate) async fn rename(
    State(web): State<Arc<Web>>,
    Path(passkey): Path<String>,
    SignedInForm { user, form, .. }: SignedInForm,
) -> Result<Response, Problem> {
    let (id, name) = (parse(&passkey)?, form.get("name"));
    match accounts::rename_passkey(&web.core, user.session.user.id, id, name).await {
        Ok(()) => Ok(see_other(&format!("{PASSKEYS}?renamed"))),
        Err(RenamePasskeyError::Name(error)) => {
            let errors = [FieldError { field: "name", message: format!("The name {error}.") }];
            one(&web, &user, id, StatusCode::UNPROCESSABLE_ENTITY, Some(name), &errors).await
        }
        Err(RenamePasskeyError::Unknown) => Err(unknown()),
        Err(RenamePasskeyError::Internal(error)) => Err(error.into()),
    }
}

/// Removes the passkey. Each attempt costs a slow hash, so the sign-in limit applies.
pub(crate) async fn remove(
    State(web): State<Arc<Web>>,
    Path(passkey): Path<String>,
    SignedInForm { user, form, .. }: SignedInForm<PasswordLimit>,
) -> Result<Response, Problem> {
    let (me, id, password) = (&user.session.user, parse(&passkey)?, form.get("password"));
    let answer = factor_answer(&form);
    let error = match accounts::remove_passkey(&web.core, me, &user.token, id, password, answer).await {
        Ok(turned_off) => {
            return Ok(see_other(&format!("{PASSKEYS}?{}", if turned_off { "off" } else { "removed" })));
        }
        Err(error) => error,
    };
    let (error, retry_after_s) = field_error(error)?;
    let response = one(&web, &user, id, error_status(retry_after_s), None, &[error]).await?;
    Ok(with_retry_after(response, retry_after_s))
}

async fn one(
    web: &Web,
    signed_in: &SignedIn,
    id: PasskeyId,
    status: StatusCode,
    entered: Option<&str>,
    errors: &[FieldError],
) -> Result<Response, Problem> {
    let user = signed_in.session.user.id;
    let passkeys = accounts::list_passkeys(&web.core, user).await?;
    let is_only = passkeys.len() == 1;
    let found = passkeys.into_iter().find(|passkey| passkey.id == id);
    let PasskeyInfo { name: current, .. } = found.ok_or_else(unknown)?;
    let has_app = accounts::find_second_factor(&web.core, user).await?.is_some_and(|factor| factor.has_app);
    let factor = FactorFields::of(web, user, errors).await?;
    let template = PasskeyPage {
        layout: factor.layout(web, web.user_layout(&signed_in.session, PATH)),
        form_token: &signed_in.session.csrf,
        path: format!("{PASSKEYS}/{id}"),
        back: PASSKEYS,
        is_last_factor: is_only && !has_app,
        name: name_field("Name", "", None, errors).with_value(entered.unwrap_or(&current)),
        current,
        factor,
        errors,
    };
    Ok(page_with(template.factor.csp(), status, &template))
}

fn parse(passkey: &str) -> Result<PasskeyId, Problem> {
    passkey.parse().map_err(|_| unknown())
}

fn unknown() -> Problem {
    Problem::not_found("This passkey does not exist, or was removed.")
}
