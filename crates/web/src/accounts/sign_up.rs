//! `/sign-up`: an account for whoever wants one, where the operator lets them.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Request, State};
use axum::response::Response;
use grabd_domain::accounts::{EmailError, PASSWORD_CHARS, PasswordError};
use grabd_engine::accounts::{self, SignUpError};
use http::header::SET_COOKIE;
use http::{HeaderMap, StatusCode};

use super::{PASSWORD_HINT, email_field, let_in, next, password_field};
use crate::Web;
use crate::forgery::{self, Visit};
use crate::form::{Complaint, Field, Form};
use crate::frame::{Client, see_other};
use crate::limits::Spent;
use crate::page::{Frame, page};
use crate::problem::Problem;

#[derive(Template)]
#[template(path = "sign_up.html")]
struct SignUpPage<'a> {
    frame: Frame,
    form_token: String,
    next: &'a str,
    email: Field,
    password: Field,
    errors: &'a [Complaint],
}

#[derive(Template)]
#[template(path = "sign_up_closed.html")]
struct ClosedPage {
    frame: Frame,
}

/// The form, or whom to ask.
pub(crate) async fn show(State(web): State<Arc<Web>>, client: Client, request: Request) -> Result<Response, Problem> {
    web.limits.pages.take(client.0)?;
    if !web.core.may_sign_up() {
        return Ok(page(StatusCode::OK, &ClosedPage { frame: web.plain_frame() }));
    }
    let query = Form::parse(request.uri().query().unwrap_or_default().as_bytes());
    if web.signed_in(request.headers()).await?.is_some() {
        return Ok(see_other(next(&query).as_str()));
    }
    Ok(form(&web, request.headers(), StatusCode::OK, &query, &[]))
}

/// A try.
pub(crate) async fn submit(State(web): State<Arc<Web>>, client: Client, request: Request) -> Result<Response, Problem> {
    web.limits.sign_ups.take(client.0)?;
    let (head, body) = request.into_parts();
    let sent = Form::read(&head.headers, body).await?;
    forgery::check_visit(&web.cookies, &head.headers, &sent)?;
    let complaint = match accounts::sign_up(&web.core, sent.one("email"), sent.one("password")).await {
        Ok(token) => return let_in(&web, &head.headers, &token, &next(&sent)).await,
        Err(SignUpError::Closed) => {
            return Ok(page(StatusCode::FORBIDDEN, &ClosedPage { frame: web.plain_frame() }));
        }
        Err(SignUpError::Email(EmailError)) => Complaint { field: "email", message: WANTED_EMAIL.to_owned() },
        Err(SignUpError::Password(error)) => Complaint { field: "password", message: wanted(error) },
        Err(SignUpError::EmailTaken) => Complaint {
            field: "email",
            message: "No account can be made with this e-mail address. If it is yours, sign in.".to_owned(),
        },
        Err(SignUpError::TooMany { retry_after_s }) => return Err(Spent { retry_after_s }.into()),
        Err(SignUpError::Inside(fault)) => return Err(fault.into()),
    };
    Ok(form(&web, &head.headers, StatusCode::UNPROCESSABLE_ENTITY, &sent, &[complaint]))
}

/// What an e-mail address should have been.
pub(crate) const WANTED_EMAIL: &str = "Write an e-mail address such as ada@example.com.";

/// What the password should have been.
pub(crate) fn wanted(PasswordError { chars }: PasswordError) -> String {
    let (least, most) = (PASSWORD_CHARS.start(), PASSWORD_CHARS.end());
    match chars < *least {
        true => format!("Use at least {least} characters; this password has {chars}."),
        false => format!("Use at most {most} characters; this password has {chars}."),
    }
}

fn form(web: &Web, headers: &HeaderMap, status: StatusCode, sent: &Form, errors: &[Complaint]) -> Response {
    let visit = Visit::of(&web.cookies, headers);
    let next = next(sent);
    let template = SignUpPage {
        frame: web.plain_frame(),
        form_token: visit.form_token(),
        next: next.as_str(),
        email: email_field(sent, errors),
        password: password_field("new-password", PASSWORD_HINT, errors),
        errors,
    };
    let mut response = page(status, &template);
    response.headers_mut().append(SET_COOKIE, visit.cookie(&web.cookies));
    response
}
