//! `/sign-in`

use std::sync::Arc;

use askama::Template;
use axum::extract::{Request, State};
use axum::response::Response;
use grabd_engine::accounts::{self, SignInError};
use http::header::{RETRY_AFTER, SET_COOKIE};
use http::{HeaderMap, HeaderValue, StatusCode};

use super::{email_field, let_in, next, password_field};
use crate::forgery::{self, Visit};
use crate::form::{Complaint, Field, Form};
use crate::frame::{Client, see_other};
use crate::next::Next;
use crate::page::{Frame, page};
use crate::problem::{Problem, wait};
use crate::{Web, oauth};

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignInPage<'a> {
    frame: Frame,
    form_token: String,
    next: &'a str,
    leads_to_app: bool,
    is_signed_out: bool,
    is_password_set: bool,
    sign_up: bool,
    email: Field,
    password: Field,
    errors: &'a [Complaint],
}

/// The form. Who is signed in already goes on.
pub(crate) async fn show(State(web): State<Arc<Web>>, client: Client, request: Request) -> Result<Response, Problem> {
    web.limits.pages.take(client.0)?;
    let query = Form::parse(request.uri().query().unwrap_or_default().as_bytes());
    if web.signed_in(request.headers()).await?.is_some() {
        return Ok(see_other(next(&query).as_str()));
    }
    Ok(form(&web, request.headers(), StatusCode::OK, &query, &[]))
}

/// A try.
pub(crate) async fn submit(State(web): State<Arc<Web>>, client: Client, request: Request) -> Result<Response, Problem> {
    web.limits.sign_ins.take(client.0)?;
    let (head, body) = request.into_parts();
    let sent = Form::read(&head.headers, body).await?;
    forgery::check_visit(&web.cookies, &head.headers, &sent)?;

    let complaints = missing(&sent);
    if !complaints.is_empty() {
        return Ok(form(&web, &head.headers, StatusCode::UNPROCESSABLE_ENTITY, &sent, &complaints));
    }
    match accounts::sign_in(&web.core, sent.one("email"), sent.one("password")).await {
        Ok(token) => let_in(&web, &head.headers, &token, &next(&sent)).await,
        Err(SignInError::Wrong) => {
            let message = "The e-mail address or the password is wrong.".to_owned();
            let wrong = [Complaint { field: "", message }];
            Ok(form(&web, &head.headers, StatusCode::UNPROCESSABLE_ENTITY, &sent, &wrong))
        }
        Err(SignInError::TooMany { retry_after_s }) => {
            let message =
                format!("Too many wrong passwords for this e-mail address. Try again in {}.", wait(retry_after_s));
            let spent = [Complaint { field: "", message }];
            let mut response = form(&web, &head.headers, StatusCode::TOO_MANY_REQUESTS, &sent, &spent);
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(retry_after_s));
            Ok(response)
        }
        Err(SignInError::Inside(fault)) => Err(fault.into()),
    }
}

fn missing(sent: &Form) -> Vec<Complaint> {
    [("email", "Write your e-mail address."), ("password", "Write your password.")]
        .into_iter()
        .filter(|(field, _)| sent.one(field).is_empty())
        .map(|(field, message)| Complaint { field, message: message.to_owned() })
        .collect()
}

fn form(web: &Web, headers: &HeaderMap, status: StatusCode, sent: &Form, errors: &[Complaint]) -> Response {
    let visit = Visit::of(&web.cookies, headers);
    let next = next(sent);
    let template = SignInPage {
        frame: web.plain_frame(),
        form_token: visit.form_token(),
        leads_to_app: leads_to_app(web, &next),
        next: next.as_str(),
        is_signed_out: sent.has("signed_out"),
        is_password_set: sent.has("password_set"),
        sign_up: web.core.may_sign_up(),
        email: email_field(sent, errors),
        password: password_field("current-password", "", errors),
        errors,
    };
    let mut response = page(status, &template);
    response.headers_mut().append(SET_COOKIE, visit.cookie(&web.cookies));
    response
}

fn leads_to_app(web: &Web, next: &Next) -> bool {
    next.path() == oauth::authorize_path(&web.core.oauth().issuer)
}
