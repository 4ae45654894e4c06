//! `/forgotten-password`: requests a password reset link. The response and its timing do not reveal whether the account
//! exists.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use grabd_domain::accounts::Email;
use grabd_engine::accounts;
use http::header::SET_COOKIE;
use http::{HeaderMap, StatusCode};

use crate::extract::{MailLimit, Visit, VisitorForm, VisitorPage};
use crate::fields::{EMAIL_MESSAGE, email_field};
use crate::form::{Field, FieldError, Form};
use crate::page::{Layout, page};
use crate::problem::Problem;
use crate::state::Web;

#[derive(Template)]
#[template(path = "forgotten.html")]
struct ForgottenPage<'a> {
    layout: Layout,
    form_token: String,
    sends_mail: bool,
    email: Field,
    errors: &'a [FieldError],
}

#[derive(Template)]
#[template(path = "forgotten_sent.html")]
struct LinkSentPage<'a> {
    layout: Layout,
    sends_mail: bool,
    email: &'a str,
}

/// Shows the form.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    VisitorPage { headers, query, .. }: VisitorPage,
) -> Result<Response, Problem> {
    Ok(form(&web, &headers, StatusCode::OK, &query, &[]))
}

/// Requests a reset link.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    VisitorForm { headers, form: input, .. }: VisitorForm<MailLimit>,
) -> Result<Response, Problem> {
    let email = input.get("email");
    if Email::parse(email).is_err() {
        let errors = [FieldError { field: "email", message: EMAIL_MESSAGE.to_owned() }];
        return Ok(form(&web, &headers, StatusCode::UNPROCESSABLE_ENTITY, &input, &errors));
    }
    accounts::request_password_reset(&web.core, email);
    let template = LinkSentPage { layout: web.plain_layout(), sends_mail: web.core.sends_mail(), email: email.trim() };
    Ok(page(StatusCode::OK, &template))
}

fn form(web: &Web, headers: &HeaderMap, status: StatusCode, input: &Form, errors: &[FieldError]) -> Response {
    let visit = Visit::of(&web.cookies, headers);
    let template = ForgottenPage {
        layout: web.plain_layout(),
        form_token: visit.form_token(),
        sends_mail: web.core.sends_mail(),
        email: email_field(input, errors),
        errors,
    };
    let mut response = page(status, &template);
    response.headers_mut().append(SET_COOKIE, visit.cookie(&web.cookies));
    response
}
