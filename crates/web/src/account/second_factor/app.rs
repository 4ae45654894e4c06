//! `/account/second-factor/app`: sets an authenticator app while the second factor is on.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use grabd_engine::accounts::{self, SecondFactorSetup};
use http::StatusCode;

use super::off::is_on;
use super::{APP, error_status, field_error, with_retry_after};
use crate::account::PATH;
use crate::account::factor_fields::FactorFields;
use crate::extract::{PasswordLimit, SignedInForm, SignedInPage};
use crate::fields::{app_code_field, factor_answer};
use crate::form::{Field, FieldError};
use crate::page::{Layout, page_with};
use crate::paths::SECOND_FACTOR;
use crate::problem::Problem;
use crate::qr::QrImage;
use crate::response::see_other;
use crate::session::SignedIn;
use crate::state::Web;

#[derive(Template)]
#[template(path = "second_factor_app.html")]
struct AppPage<'a> {
    layout: Layout,
    /// The script of the button that copies the secret. The layout has that of the passkeys.
    copy_script: &'a str,
    form_token: &'a str,
    action: &'static str,
    back: &'static str,
    /// Whether the user has an app already.
    has_app: bool,
    secret: &'a str,
    /// `None` if the e-mail address is too long for a QR code.
    qr: Option<QrImage>,
    setup: &'a str,
    app_code: Field,
    factor: FactorFields,
    errors: &'a [FieldError],
}

/// Shows the secret for the app.
pub(crate) async fn show(State(web): State<Arc<Web>>, SignedInPage(user): SignedInPage) -> Result<Response, Problem> {
    if !is_on(&web, &user).await? {
        return Ok(see_other(SECOND_FACTOR));
    }
    let setup = accounts::new_second_factor_setup(&web.core, &user.session.user);
    form(&web, &user, &setup, StatusCode::OK, &[]).await
}

/// Sets the app. Each attempt costs a slow hash, so the sign-in limit applies.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    SignedInForm { user, form: input, .. }: SignedInForm<PasswordLimit>,
) -> Result<Response, Problem> {
    let (me, this) = (&user.session.user, &user.token);
    let (token, app_code, password) = (input.get("setup"), input.get("app_code"), input.get("password"));
    let answer = factor_answer(&input);
    let error = match accounts::set_authenticator_app(&web.core, me, this, token, app_code, password, answer).await {
        Ok(()) => return Ok(see_other(&format!("{SECOND_FACTOR}?app"))),
        Err(error) => error,
    };
    let (error, retry_after_s) = field_error(error)?;
    // It was valid a moment ago.
    let setup = accounts::find_second_factor_setup(&web.core, me, token);
    let setup = setup.unwrap_or_else(|| accounts::new_second_factor_setup(&web.core, me));
    let response = form(&web, &user, &setup, error_status(retry_after_s), &[error]).await?;
    Ok(with_retry_after(response, retry_after_s))
}

async fn form(
    web: &Web,
    signed_in: &SignedIn,
    setup: &SecondFactorSetup,
    status: StatusCode,
    errors: &[FieldError],
) -> Result<Response, Problem> {
    let user = signed_in.session.user.id;
    let status_now = accounts::find_second_factor(&web.core, user).await?;
    let factor = FactorFields::of(web, user, errors).await?;
    let template = AppPage {
        layout: factor.layout(web, web.user_layout(&signed_in.session, PATH)),
        copy_script: &web.assets.copy.path,
        form_token: &signed_in.session.csrf,
        action: APP,
        back: SECOND_FACTOR,
        has_app: status_now.is_some_and(|status| status.has_app),
        secret: &setup.secret,
        qr: QrImage::of(&setup.uri),
        setup: &setup.token,
        app_code: app_code_field(errors),
        factor,
        errors,
    };
    Ok(page_with(template.factor.csp(), status, &template))
}
