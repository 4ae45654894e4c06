//! `/sign-in/code`: the second step of a sign-in, for accounts with a second factor. The cookie of the first step gives
//! access to this page only.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use grabd_engine::accounts::{self, CodeSignInError, PendingSignIn, PendingSignInInfo};
use http::header::{RETRY_AFTER, SET_COOKIE};
use http::{HeaderMap, HeaderValue, StatusCode};

use super::with_password::leads_to_app;
use super::{next, source, start_session};
use crate::cookies::Cookie;
use crate::extract::{Visit, VisitorForm, VisitorPage};
use crate::fields::{code_error, code_field, recovery_code_field};
use crate::form::{Field, FieldError, Form};
use crate::page::{CspOptions, Layout, page_with};
use crate::paths::SIGN_IN;
use crate::problem::Problem;
use crate::response::see_other;
use crate::session::sign_in_url;
use crate::state::Web;

/// The query parameter and field by which the page asks for a recovery code.
const RECOVERY: &str = "recovery";

#[derive(Template)]
#[template(path = "sign_in_code.html")]
struct CodePage<'a> {
    layout: Layout,
    form_token: String,
    next: &'a str,
    sign_in: String,
    email: &'a str,
    leads_to_app: bool,
    has_app: bool,
    has_passkeys: bool,
    is_recovery: bool,
    code: Field,
    errors: &'a [FieldError],
}

/// Shows the form.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    VisitorPage { headers, query, .. }: VisitorPage,
) -> Result<Response, Problem> {
    let pending = pending(&web, &headers);
    let user = match &pending {
        Some(pending) => accounts::find_pending_sign_in(&web.core, pending).await?,
        None => return Ok(see_other(&sign_in_url(next(&query).as_str()))),
    };
    match user {
        Some(user) => Ok(form(&web, &headers, StatusCode::OK, &user, &query, &[])),
        None => Ok(start_again(&web, &query)),
    }
}

/// Signs in with the code.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    VisitorForm { client, headers, form: input, .. }: VisitorForm,
) -> Result<Response, Problem> {
    let Some(pending) = pending(&web, &headers) else { return Ok(start_again(&web, &input)) };
    let source = source(&web, client, &headers);
    let error = match accounts::sign_in_with_code(&web.core, &pending, input.get("code"), &source).await {
        Ok(token) => return start_session(&web, client, &headers, &token, &next(&input)).await,
        Err(CodeSignInError::Expired) => return Ok(start_again(&web, &input)),
        Err(CodeSignInError::Internal(error)) => return Err(error.into()),
        Err(CodeSignInError::Code(error)) => error,
    };
    let (error, retry_after_s) = code_error(error)?;
    let Some(user) = accounts::find_pending_sign_in(&web.core, &pending).await? else {
        return Ok(start_again(&web, &input));
    };
    let status = match retry_after_s {
        Some(_) => StatusCode::TOO_MANY_REQUESTS,
        None => StatusCode::UNPROCESSABLE_ENTITY,
    };
    let mut response = form(&web, &headers, status, &user, &input, &[error]);
    if let Some(seconds) = retry_after_s {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    Ok(response)
}

/// The pending sign-in of the request's cookie.
pub(super) fn pending(web: &Web, headers: &HeaderMap) -> Option<PendingSignIn> {
    web.cookies.get(Cookie::PendingSignIn, headers).and_then(PendingSignIn::parse)
}

/// Redirects to the first step, because this one has expired.
pub(super) fn start_again(web: &Web, input: &Form) -> Response {
    let query = Form::from_iter([("expired", ""), ("next", next(input).as_str())]).to_query();
    let mut response = see_other(&format!("{SIGN_IN}?{query}"));
    response.headers_mut().append(SET_COOKIE, web.cookies.remove(Cookie::PendingSignIn));
    response
}

/// Renders the form.
pub(super) fn form(
    web: &Web,
    headers: &HeaderMap,
    status: StatusCode,
    user: &PendingSignInInfo,
    input: &Form,
    errors: &[FieldError],
) -> Response {
    let visit = Visit::of(&web.cookies, headers);
    let next = next(input);
    let PendingSignInInfo { email, has_app, has_passkeys } = user;
    let has_passkeys = *has_passkeys && accounts::has_passkeys(&web.core);
    let is_recovery = input.has(RECOVERY) || !has_app;
    let script = has_passkeys.then(|| web.assets.passkey.path.clone());
    let template = CodePage {
        layout: Layout { script, ..web.plain_layout() },
        form_token: visit.form_token(),
        leads_to_app: leads_to_app(web, &next),
        next: next.as_str(),
        sign_in: sign_in_url(next.as_str()),
        email: email.as_str(),
        has_app: *has_app,
        has_passkeys,
        is_recovery,
        code: if is_recovery { recovery_code_field(errors) } else { code_field(errors) },
        errors,
    };
    let csp = CspOptions { connects: has_passkeys, ..CspOptions::default() };
    let mut response = page_with(csp, status, &template);
    response.headers_mut().append(SET_COOKIE, visit.cookie(&web.cookies));
    response
}
