//! `/account/second-factor`: sets up the second factor, or shows that it is on.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use grabd_engine::accounts::{self, SecondFactorSetup, SecondFactorStatus};
use http::StatusCode;

use super::{APP, codes_page, error_status, field_error, with_retry_after};
use crate::account::PATH;
use crate::extract::{PasswordLimit, QueryForm, SignedInForm, SignedInPage};
use crate::fields::{code_field, password_field};
use crate::form::{Field, FieldError};
use crate::page::{Layout, page};
use crate::problem::Problem;
use crate::qr::QrImage;
use crate::session::SignedIn;
use crate::state::Web;
use crate::time_format::Moment;

#[derive(Template)]
#[template(path = "second_factor_setup.html")]
struct SetupPage<'a> {
    layout: Layout,
    form_token: &'a str,
    is_required: bool,
    has_passkeys: bool,
    secret: &'a str,
    /// `None` if the e-mail address is too long for a QR code.
    qr: Option<QrImage>,
    setup: &'a str,
    code: Field,
    password: Field,
    errors: &'a [FieldError],
}

#[derive(Template)]
#[template(path = "second_factor.html")]
struct StatusPage {
    layout: Layout,
    /// Whether an app was just set up.
    is_app_set: bool,
    /// The page that sets an app.
    app: &'static str,
    since: Moment,
    has_app: bool,
    passkeys: usize,
    /// Whether passkeys can be added.
    has_passkeys: bool,
    recovery_codes: u64,
}

/// Shows the page.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    SignedInPage(user): SignedInPage,
    QueryForm(query): QueryForm,
) -> Result<Response, Problem> {
    let me = &user.session.user;
    if let Some(status) = accounts::find_second_factor(&web.core, me.id).await? {
        let SecondFactorStatus { since, has_app, recovery_codes } = status;
        let template = StatusPage {
            layout: web.user_layout(&user.session, PATH),
            is_app_set: query.has("app"),
            app: APP,
            since: since.into(),
            has_app,
            passkeys: accounts::list_passkeys(&web.core, me.id).await?.len(),
            has_passkeys: accounts::has_passkeys(&web.core),
            recovery_codes,
        };
        return Ok(page(StatusCode::OK, &template));
    }
    if !me.verified {
        return Err(Problem::unverified());
    }
    let setup = accounts::new_second_factor_setup(&web.core, me);
    Ok(form(&web, &user, &setup, query.has("required"), StatusCode::OK, &[]))
}

/// Turns the second factor on. Each attempt costs a slow hash, so the sign-in limit applies.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    SignedInForm { user, form: input, .. }: SignedInForm<PasswordLimit>,
) -> Result<Response, Problem> {
    let me = &user.session.user;
    let (token, password, code) = (input.get("setup"), input.get("password"), input.get("code"));
    let error = match accounts::turn_on_second_factor(&web.core, me, &user.token, token, password, code).await {
        Ok(codes) => return Ok(codes_page(&web, &user.session, true, &codes)),
        Err(error) => error,
    };
    let (error, retry_after_s) = field_error(error)?;
    // It was valid a moment ago.
    let setup = accounts::find_second_factor_setup(&web.core, me, token);
    let setup = setup.unwrap_or_else(|| accounts::new_second_factor_setup(&web.core, me));
    let response = form(&web, &user, &setup, false, error_status(retry_after_s), &[error]);
    Ok(with_retry_after(response, retry_after_s))
}

fn form(
    web: &Web,
    user: &SignedIn,
    setup: &SecondFactorSetup,
    is_required: bool,
    status: StatusCode,
    errors: &[FieldError],
) -> Response {
    let script = Some(web.assets.copy.path.clone());
    let template = SetupPage {
        layout: Layout { script, ..web.user_layout(&user.session, PATH) },
        form_token: &user.session.csrf,
        is_required,
        has_passkeys: accounts::has_passkeys(&web.core),
        secret: &setup.secret,
        qr: QrImage::of(&setup.uri),
        setup: &setup.token,
        code: code_field(errors),
        password: password_field("current-password", "", errors),
        errors,
    };
    page(status, &template)
}
