//! `/verify-email`: the target of a verification link, and `/verify-email/send`, which sends another one. Loading the
//! page does not use up the link, because mail scanners open links before the user does.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Request, State};
use axum::response::Response;
use grabd_engine::accounts::{self, Verification, VerificationError, VerificationRequest};
use http::header::SET_COOKIE;
use http::{HeaderMap, StatusCode};

use super::continue_sign_in;
use crate::account;
use crate::client_ip::ClientIp;
use crate::extract::{MailLimit, SignedInForm, UncheckedForm, Visit, VisitorPage};
use crate::fields::{PASSWORD_HINT, password_field, password_message};
use crate::form::{Field, FieldError, Form};
use crate::next::NextPath;
use crate::page::{Layout, page};
use crate::paths::{NEW_CAPTURE, VERIFIED};
use crate::problem::Problem;
use crate::rate_limits::RateLimited;
use crate::response::see_other;
use crate::session::{SignedIn, sign_in_url};
use crate::state::Web;

/// The path of the page.
pub(crate) const PATH: &str = "/verify-email";
/// The path that sends a link.
pub(crate) const SEND: &str = "/verify-email/send";

const ASK_AGAIN: &str = "Sign in, and send another link.";

#[derive(Template)]
#[template(path = "verify_email.html")]
struct VerifyPage<'a> {
    layout: Layout,
    form_token: String,
    token: &'a str,
    email: &'a str,
    /// Whether the user is signed in to the account of the link.
    is_own: bool,
    /// What the user gets. Empty if the operator grants nothing.
    reward: String,
    sign_in: String,
    password: Field,
    errors: &'a [FieldError],
}

#[derive(Template)]
#[template(path = "verify_sent.html")]
struct LinkSentPage {
    layout: Layout,
    title: &'static str,
    message: String,
}

/// Shows the form.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    VisitorPage { headers, query, .. }: VisitorPage,
) -> Result<Response, Problem> {
    let found = accounts::find_verification(&web.core, query.get("token")).await?;
    let verification = found.ok_or_else(|| Problem::invalid_link(ASK_AGAIN))?;
    let user = web.signed_in(&headers).await?;
    Ok(form(&web, &headers, user.as_ref(), &verification, &query, StatusCode::OK, &[]))
}

/// Verifies the address of the signed-in user, or gives the account to the visitor who has the link.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    client: ClientIp,
    request: Request,
) -> Result<Response, Problem> {
    web.limits.links.take(client.0)?;
    // The account of the link decides whether the form has the token of the session or that of the visit.
    let sent = UncheckedForm::read(request).await?;
    let found = accounts::find_verification(&web.core, sent.unchecked().get("token")).await?;
    let verification = found.ok_or_else(|| Problem::invalid_link(ASK_AGAIN))?;
    let user = web.signed_in(sent.headers()).await?;
    // The form for a new capture says how many credits there are.
    let verified_page = NextPath::parse(&format!("{NEW_CAPTURE}?{VERIFIED}"), account::PATH);
    let (input, error) = match own(user.as_ref(), &verification) {
        Some(user) => {
            let input = sent.check(&user.session)?;
            match accounts::verify_email(&web.core, verification.user, input.get("token")).await {
                Ok(()) => return Ok(see_other(verified_page.as_str())),
                Err(error) => (input, error),
            }
        }
        None => {
            let input = sent.check_visit(&web.cookies)?;
            match accounts::take_over_account(&web.core, input.get("token"), input.get("password")).await {
                Ok(outcome) => return continue_sign_in(&web, client, sent.headers(), outcome, &verified_page).await,
                Err(error) => (input, error),
            }
        }
    };
    match error {
        VerificationError::InvalidLink => Err(Problem::invalid_link(ASK_AGAIN)),
        VerificationError::Password(error) => {
            let errors = [FieldError { field: "password", message: password_message(error) }];
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            Ok(form(&web, sent.headers(), user.as_ref(), &verification, input, status, &errors))
        }
        VerificationError::TooMany { retry_after_s } => Err(RateLimited { retry_after_s }.into()),
        VerificationError::Internal(error) => Err(error.into()),
    }
}

/// Sends another link to the signed-in user.
pub(crate) async fn send(
    State(web): State<Arc<Web>>,
    SignedInForm { user, .. }: SignedInForm<MailLimit>,
) -> Result<Response, Problem> {
    let email = user.session.user.email.as_str();
    let (status, title, message) = match accounts::request_verification(&web.core, user.session.user.id).await? {
        VerificationRequest::Sent => {
            let message = format!("We sent a link to {email}. It is valid for 24 hours and can be used once.");
            (StatusCode::OK, "Check your mail", message)
        }
        VerificationRequest::TooMany => {
            let message = "One address gets at most five messages an hour. Use the link that was sent last, or try \
                           again later.";
            (StatusCode::TOO_MANY_REQUESTS, "Too many messages", message.to_owned())
        }
        VerificationRequest::NotNeeded => return Ok(see_other(account::PATH)),
    };
    let layout = web.user_layout(&user.session, "");
    Ok(page(status, &LinkSentPage { layout, title, message }))
}

/// The signed-in user, if the link is for their account.
fn own<'a>(user: Option<&'a SignedIn>, verification: &Verification) -> Option<&'a SignedIn> {
    user.filter(|user| user.session.user.id == verification.user)
}

fn form(
    web: &Web,
    headers: &HeaderMap,
    user: Option<&SignedIn>,
    verification: &Verification,
    input: &Form,
    status: StatusCode,
    errors: &[FieldError],
) -> Response {
    let visit = Visit::of(&web.cookies, headers);
    let user = own(user, verification);
    let token = input.get("token");
    let here = Form::from_iter([("token", token)]).to_query();
    let template = VerifyPage {
        layout: web.plain_layout(),
        form_token: user.map_or_else(|| visit.form_token(), |user| user.session.csrf.clone()),
        token,
        email: verification.email.as_str(),
        is_own: user.is_some(),
        reward: web.trial_captures(),
        sign_in: sign_in_url(&format!("{PATH}?{here}")),
        password: password_field("new-password", PASSWORD_HINT, &[]).with_name("password", "New password", errors),
        errors,
    };
    let mut response = page(status, &template);
    if user.is_none() {
        response.headers_mut().append(SET_COOKIE, visit.cookie(&web.cookies));
    }
    response
}
