//! `/new-password`: where the link leads that somebody who forgot theirs was sent. Looking at it uses nothing up, since
//! programs look at what is in mails before people do.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Request, State};
use axum::response::Response;
use grabd_engine::accounts::{self, ResetError};
use http::header::SET_COOKIE;
use http::{HeaderMap, StatusCode};

use super::sign_up::wanted;
use super::{PASSWORD_HINT, SIGN_IN, password_field};
use crate::Web;
use crate::cookies::Cookie;
use crate::forgery::{self, Visit};
use crate::form::{Complaint, Field, Form};
use crate::frame::{Client, see_other};
use crate::limits::Spent;
use crate::page::{Frame, page};
use crate::problem::Problem;

#[derive(Template)]
#[template(path = "new_password.html")]
struct NewPasswordPage<'a> {
    frame: Frame,
    form_token: String,
    token: &'a str,
    password: Field,
    errors: &'a [Complaint],
}

/// The form.
pub(crate) async fn show(State(web): State<Arc<Web>>, client: Client, request: Request) -> Result<Response, Problem> {
    web.limits.pages.take(client.0)?;
    let query = Form::parse(request.uri().query().unwrap_or_default().as_bytes());
    if !accounts::may_reset(&web.core, query.one("token")).await? {
        return Err(Problem::link_is_over("Ask for another one where you sign in."));
    }
    Ok(form(&web, request.headers(), StatusCode::OK, &query, &[]))
}

/// The new password.
pub(crate) async fn submit(State(web): State<Arc<Web>>, client: Client, request: Request) -> Result<Response, Problem> {
    web.limits.sign_ins.take(client.0)?;
    let (head, body) = request.into_parts();
    let sent = Form::read(&head.headers, body).await?;
    forgery::check_visit(&web.cookies, &head.headers, &sent)?;
    match accounts::reset_password(&web.core, sent.one("token"), sent.one("password")).await {
        Ok(()) => {
            let mut response = see_other(&format!("{SIGN_IN}?password_set"));
            response.headers_mut().append(SET_COOKIE, web.cookies.end(Cookie::Session));
            Ok(response)
        }
        Err(ResetError::Unknown) => Err(Problem::link_is_over("Ask for another one where you sign in.")),
        Err(ResetError::New(error)) => {
            let bad = [Complaint { field: "password", message: wanted(error) }];
            Ok(form(&web, &head.headers, StatusCode::UNPROCESSABLE_ENTITY, &sent, &bad))
        }
        Err(ResetError::TooMany { retry_after_s }) => Err(Spent { retry_after_s }.into()),
        Err(ResetError::Inside(fault)) => Err(fault.into()),
    }
}

fn form(web: &Web, headers: &HeaderMap, status: StatusCode, sent: &Form, errors: &[Complaint]) -> Response {
    let visit = Visit::of(&web.cookies, headers);
    let template = NewPasswordPage {
        frame: web.plain_frame(),
        form_token: visit.form_token(),
        token: sent.one("token"),
        password: password_field("new-password", PASSWORD_HINT, &[]).named("password", "New password", errors),
        errors,
    };
    let mut response = page(status, &template);
    response.headers_mut().append(SET_COOKIE, visit.cookie(&web.cookies));
    response
}
