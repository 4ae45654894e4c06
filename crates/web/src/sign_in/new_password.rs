//! `/new-password`: the target of a password reset link. Loading the page does not use up the link, because mail
//! scanners open links before the user does.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use grabd_engine::accounts::{self, ResetError};
use http::header::SET_COOKIE;
use http::{HeaderMap, StatusCode};

use super::continue_sign_in;
use crate::account;
use crate::extract::{LinkLimit, Visit, VisitorForm, VisitorPage};
use crate::fields::{PASSWORD_HINT, password_field, password_message};
use crate::form::{Field, FieldError, Form};
use crate::next::NextPath;
use crate::page::{Layout, page};
use crate::problem::Problem;
use crate::rate_limits::RateLimited;
use crate::state::Web;

#[derive(Template)]
#[template(path = "new_password.html")]
struct NewPasswordPage<'a> {
    layout: Layout,
    form_token: String,
    token: &'a str,
    password: Field,
    errors: &'a [FieldError],
}

/// Shows the form.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    VisitorPage { headers, query, .. }: VisitorPage,
) -> Result<Response, Problem> {
    if !accounts::is_reset_valid(&web.core, query.get("token")).await? {
        return Err(Problem::invalid_link("Request a new link on the sign-in page."));
    }
    Ok(form(&web, &headers, StatusCode::OK, &query, &[]))
}

/// Sets the new password.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    VisitorForm { client, headers, form: input, .. }: VisitorForm<LinkLimit>,
) -> Result<Response, Problem> {
    match accounts::reset_password(&web.core, input.get("token"), input.get("password")).await {
        Ok(outcome) => {
            let next = NextPath::parse(&format!("{}?reset", account::PATH), account::PATH);
            continue_sign_in(&web, client, &headers, outcome, &next).await
        }
        Err(ResetError::InvalidLink) => Err(Problem::invalid_link("Request a new link on the sign-in page.")),
        Err(ResetError::InvalidPassword(error)) => {
            let errors = [FieldError { field: "password", message: password_message(error) }];
            Ok(form(&web, &headers, StatusCode::UNPROCESSABLE_ENTITY, &input, &errors))
        }
        Err(ResetError::TooMany { retry_after_s }) => Err(RateLimited { retry_after_s }.into()),
        Err(ResetError::Internal(error)) => Err(error.into()),
    }
}

fn form(web: &Web, headers: &HeaderMap, status: StatusCode, input: &Form, errors: &[FieldError]) -> Response {
    let visit = Visit::of(&web.cookies, headers);
    let template = NewPasswordPage {
        layout: web.plain_layout(),
        form_token: visit.form_token(),
        token: input.get("token"),
        password: password_field("new-password", PASSWORD_HINT, &[]).with_name("password", "New password", errors),
        errors,
    };
    let mut response = page(status, &template);
    response.headers_mut().append(SET_COOKIE, visit.cookie(&web.cookies));
    response
}
