//! `/sign-in`: the sign-in page.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Request, State};
use axum::response::Response;
use grabd_engine::accounts::{self, SignInError, SignInSource};
use http::header::{RETRY_AFTER, SET_COOKIE};
use http::{HeaderMap, HeaderValue, StatusCode};
use sha2::{Digest, Sha256};

use super::{continue_sign_in, next, source};
use crate::client_ip::ClientIp;
use crate::extract::{Visit, VisitorPage, check_visit};
use crate::fields::{email_field, password_field};
use crate::form::{Field, FieldError, Form};
use crate::next::NextPath;
use crate::oauth;
use crate::page::{CspOptions, Layout, page_with};
use crate::problem::Problem;
use crate::response::see_other;
use crate::state::Web;
use crate::time_format::wait;

/// The error of a suspended account.
pub(super) const SUSPENDED: &str = "This account is suspended. Contact your administrator.";

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignInPage<'a> {
    layout: Layout,
    form_token: String,
    next: &'a str,
    leads_to_app: bool,
    is_signed_out: bool,
    is_deleted: bool,
    is_expired: bool,
    sign_up: bool,
    has_passkeys: bool,
    email: Field,
    password: Field,
    errors: &'a [FieldError],
}

/// Shows the form. Redirects a user who is already signed in.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    VisitorPage { headers, query, .. }: VisitorPage,
) -> Result<Response, Problem> {
    if web.signed_in(&headers).await?.is_some() {
        return Ok(see_other(next(&query).as_str()));
    }
    Ok(form(&web, &headers, StatusCode::OK, &query, &[]))
}

/// Signs in.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    client: ClientIp,
    request: Request,
) -> Result<Response, Problem> {
    let (head, body) = request.into_parts();
    let source = source(&web, client, &head.headers);
    take_sign_in(&web, &source).await?;
    let input = Form::read(&head.headers, body).await?;
    check_visit(&web.cookies, &head.headers, &input)?;

    let errors = missing(&input);
    if !errors.is_empty() {
        return Ok(form(&web, &head.headers, StatusCode::UNPROCESSABLE_ENTITY, &input, &errors));
    }
    match accounts::sign_in(&web.core, input.get("email"), input.get("password"), &source).await {
        Ok(outcome) => continue_sign_in(&web, client, &head.headers, outcome, &next(&input)).await,
        Err(SignInError::InvalidCredentials) => {
            let message = "Wrong e-mail address or password.".to_owned();
            let errors = [FieldError { field: "", message }];
            Ok(form(&web, &head.headers, StatusCode::UNPROCESSABLE_ENTITY, &input, &errors))
        }
        Err(SignInError::Suspended) => {
            let errors = [FieldError { field: "", message: SUSPENDED.to_owned() }];
            Ok(form(&web, &head.headers, StatusCode::FORBIDDEN, &input, &errors))
        }
        Err(SignInError::TooMany { retry_after_s }) => {
            let message = format!(
                "Too many wrong passwords for this e-mail address. Try again in {}, or choose a new password with \
                 “Forgotten your password?”.",
                wait(retry_after_s)
            );
            let errors = [FieldError { field: "", message }];
            let mut response = form(&web, &head.headers, StatusCode::TOO_MANY_REQUESTS, &input, &errors);
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(retry_after_s));
            Ok(response)
        }
        Err(SignInError::Internal(error)) => Err(error.into()),
    }
}

/// Takes a sign-in from the limit of the network. If others have used it up, a device that was signed in before has a
/// limit of its own.
async fn take_sign_in(web: &Web, source: &SignInSource) -> Result<(), Problem> {
    let Err(limited) = web.limits.sign_ins.take(source.address) else { return Ok(()) };
    let Some(device) = &source.device else { return Err(limited.into()) };
    // Bounds the lookups for made-up devices.
    web.limits.parts.take(source.address)?;
    if !accounts::is_known_device(&web.core, device).await? {
        return Err(limited.into());
    }
    Ok(web.limits.device_sign_ins.take(Sha256::digest(device.expose()).into())?)
}

fn missing(input: &Form) -> Vec<FieldError> {
    [("email", "Enter your e-mail address."), ("password", "Enter your password.")]
        .into_iter()
        .filter(|(field, _)| input.get(field).is_empty())
        .map(|(field, message)| FieldError { field, message: message.to_owned() })
        .collect()
}

/// Renders the form.
pub(super) fn form(
    web: &Web,
    headers: &HeaderMap,
    status: StatusCode,
    input: &Form,
    errors: &[FieldError],
) -> Response {
    let visit = Visit::of(&web.cookies, headers);
    let next = next(input);
    let has_passkeys = accounts::has_passkeys(&web.core);
    let script = has_passkeys.then(|| web.assets.passkey.path.clone());
    let template = SignInPage {
        layout: Layout { script, ..web.plain_layout() },
        form_token: visit.form_token(),
        leads_to_app: leads_to_app(web, &next),
        next: next.as_str(),
        is_signed_out: input.has("signed_out"),
        is_deleted: input.has("deleted"),
        is_expired: input.has("expired"),
        sign_up: web.core.may_sign_up(),
        has_passkeys,
        email: email_field(input, errors),
        password: password_field("current-password", "", errors),
        errors,
    };
    let csp = CspOptions { connects: has_passkeys, ..CspOptions::default() };
    let mut response = page_with(csp, status, &template);
    response.headers_mut().append(SET_COOKIE, visit.cookie(&web.cookies));
    response
}

pub(super) fn leads_to_app(web: &Web, next: &NextPath) -> bool {
    next.path() == oauth::authorize_path(&web.core.oauth().issuer)
}
