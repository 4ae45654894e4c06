//! `/forgotten-password`: asks for a link to a new one. The answer is the same for everybody, and as quick.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Request, State};
use axum::response::Response;
use grabd_domain::accounts::Email;
use grabd_engine::accounts;
use http::header::SET_COOKIE;
use http::{HeaderMap, StatusCode};

use super::email_field;
use super::sign_up::WANTED_EMAIL;
use crate::Web;
use crate::forgery::{self, Visit};
use crate::form::{Complaint, Field, Form};
use crate::frame::Client;
use crate::page::{Frame, page};
use crate::problem::Problem;

#[derive(Template)]
#[template(path = "forgotten.html")]
struct ForgottenPage<'a> {
    frame: Frame,
    form_token: String,
    sends_mail: bool,
    email: Field,
    errors: &'a [Complaint],
}

#[derive(Template)]
#[template(path = "forgotten_sent.html")]
struct SentPage<'a> {
    frame: Frame,
    sends_mail: bool,
    email: &'a str,
}

/// The form.
pub(crate) async fn show(State(web): State<Arc<Web>>, client: Client, request: Request) -> Result<Response, Problem> {
    web.limits.pages.take(client.0)?;
    let query = Form::parse(request.uri().query().unwrap_or_default().as_bytes());
    Ok(form(&web, request.headers(), StatusCode::OK, &query, &[]))
}

/// A try.
pub(crate) async fn submit(State(web): State<Arc<Web>>, client: Client, request: Request) -> Result<Response, Problem> {
    web.limits.forgotten.take(client.0)?;
    let (head, body) = request.into_parts();
    let sent = Form::read(&head.headers, body).await?;
    forgery::check_visit(&web.cookies, &head.headers, &sent)?;
    let email = sent.one("email");
    if Email::parse(email).is_err() {
        let bad = [Complaint { field: "email", message: WANTED_EMAIL.to_owned() }];
        return Ok(form(&web, &head.headers, StatusCode::UNPROCESSABLE_ENTITY, &sent, &bad));
    }
    accounts::ask_for_reset(&web.core, email);
    let template = SentPage { frame: web.plain_frame(), sends_mail: web.core.sends_mail(), email: email.trim() };
    Ok(page(StatusCode::OK, &template))
}

fn form(web: &Web, headers: &HeaderMap, status: StatusCode, sent: &Form, errors: &[Complaint]) -> Response {
    let visit = Visit::of(&web.cookies, headers);
    let template = ForgottenPage {
        frame: web.plain_frame(),
        form_token: visit.form_token(),
        sends_mail: web.core.sends_mail(),
        email: email_field(sent, errors),
        errors,
    };
    let mut response = page(status, &template);
    response.headers_mut().append(SET_COOKIE, visit.cookie(&web.cookies));
    response
}
