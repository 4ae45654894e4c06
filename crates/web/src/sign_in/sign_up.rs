//! `/sign-up`: creates an account, if the operator allows sign-ups.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use grabd_domain::accounts::EmailError;
use grabd_engine::accounts::{self, SignUpError, SignedUp};
use http::header::SET_COOKIE;
use http::{HeaderMap, StatusCode};

use super::{next, start_session};
use crate::extract::{SignUpLimit, Visit, VisitorForm, VisitorPage};
use crate::fields::{EMAIL_MESSAGE, PASSWORD_HINT, email_field, password_field, password_message};
use crate::form::{Field, FieldError, Form};
use crate::page::{Layout, page};
use crate::problem::Problem;
use crate::rate_limits::RateLimited;
use crate::response::see_other;
use crate::state::Web;

#[derive(Template)]
#[template(path = "sign_up.html")]
struct SignUpPage<'a> {
    layout: Layout,
    form_token: String,
    next: &'a str,
    email: Field,
    password: Field,
    errors: &'a [FieldError],
    /// What the user gets for verifying the address. Empty if the operator grants nothing.
    reward: String,
}

#[derive(Template)]
#[template(path = "sign_up_sent.html")]
struct LinkSentPage<'a> {
    layout: Layout,
    email: &'a str,
    /// As in the form.
    reward: String,
}

#[derive(Template)]
#[template(path = "sign_up_closed.html")]
struct ClosedPage {
    layout: Layout,
}

/// Shows the form, or a note that sign-ups are closed.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    VisitorPage { headers, query, .. }: VisitorPage,
) -> Result<Response, Problem> {
    if !web.core.may_sign_up() {
        return Ok(page(StatusCode::OK, &ClosedPage { layout: web.plain_layout() }));
    }
    if web.signed_in(&headers).await?.is_some() {
        return Ok(see_other(next(&query).as_str()));
    }
    Ok(form(&web, &headers, StatusCode::OK, &query, &[]))
}

/// Creates the account.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    VisitorForm { client, headers, form: input, .. }: VisitorForm<SignUpLimit>,
) -> Result<Response, Problem> {
    let field_error = match accounts::sign_up(&web.core, input.get("email"), input.get("password"), client.0).await {
        Ok(SignedUp::SignedIn(token)) => {
            return start_session(&web, client, &headers, &token, &next(&input)).await;
        }
        Ok(SignedUp::LinkSent) => {
            let email = input.get("email").trim();
            let template = LinkSentPage { layout: web.plain_layout(), email, reward: web.trial_captures() };
            return Ok(page(StatusCode::OK, &template));
        }
        Err(SignUpError::Closed) => {
            return Ok(page(StatusCode::FORBIDDEN, &ClosedPage { layout: web.plain_layout() }));
        }
        Err(SignUpError::Email(EmailError)) => FieldError { field: "email", message: EMAIL_MESSAGE.to_owned() },
        Err(SignUpError::Password(error)) => FieldError { field: "password", message: password_message(error) },
        Err(SignUpError::EmailTaken) => FieldError {
            field: "email",
            message: "An account cannot be created with this e-mail address. If you already have one, sign in."
                .to_owned(),
        },
        Err(SignUpError::TooMany { retry_after_s }) => return Err(RateLimited { retry_after_s }.into()),
        Err(SignUpError::Internal(error)) => return Err(error.into()),
    };
    Ok(form(&web, &headers, StatusCode::UNPROCESSABLE_ENTITY, &input, &[field_error]))
}

fn form(web: &Web, headers: &HeaderMap, status: StatusCode, input: &Form, errors: &[FieldError]) -> Response {
    let visit = Visit::of(&web.cookies, headers);
    let next = next(input);
    let template = SignUpPage {
        layout: web.plain_layout(),
        form_token: visit.form_token(),
        next: next.as_str(),
        email: email_field(input, errors),
        password: password_field("new-password", PASSWORD_HINT, errors),
        errors,
        reward: web.trial_captures(),
    };
    let mut response = page(status, &template);
    response.headers_mut().append(SET_COOKIE, visit.cookie(&web.cookies));
    response
}
