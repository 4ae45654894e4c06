//! Getting in and out: one file per page.

pub(crate) mod forgotten;
pub(crate) mod new_password;
pub(crate) mod sign_in;
pub(crate) mod sign_out;
pub(crate) mod sign_up;

use axum::response::{IntoResponse, Response};
use grabd_domain::accounts::{EMAIL_BYTES, PASSWORD_CHARS};
use grabd_domain::credentials::SessionToken;
use grabd_engine::accounts;
use http::HeaderMap;
use http::header::{SET_COOKIE, USER_AGENT};

use crate::Web;
use crate::cookies::Cookie;
use crate::form::{Complaint, Field, Form};
use crate::frame::see_other;
use crate::next::Next;
use crate::problem::Problem;

/// The path of the page to sign in.
pub(crate) const SIGN_IN: &str = "/sign-in";
/// The path of the page to make an account.
pub(crate) const SIGN_UP: &str = "/sign-up";
/// The path of the page to ask for a new password.
pub(crate) const FORGOTTEN: &str = "/forgotten-password";

/// What helps with a new password.
pub(crate) const PASSWORD_HINT: &str = "At least 12 characters. Several words are better than odd signs.";

/// Where people go who were going nowhere else.
const HOME: &str = crate::grabs::PATH;

/// The way on that a form or a query asks for.
fn next(form: &Form) -> Next {
    Next::parse(form.one("next"), HOME)
}

fn email_field(form: &Form, complaints: &[Complaint]) -> Field {
    let field = Field {
        name: "email",
        label: "E-mail address",
        kind: "email",
        autocomplete: "email",
        longest: u32::try_from(*EMAIL_BYTES.end()).unwrap_or(u32::MAX),
        hint: "",
        value: form.one("email").to_owned(),
        error: None,
    };
    field.with_errors(complaints)
}

pub(crate) fn password_field(autocomplete: &'static str, hint: &'static str, complaints: &[Complaint]) -> Field {
    let field = Field {
        name: "password",
        label: "Password",
        kind: "password",
        autocomplete,
        longest: u32::try_from(*PASSWORD_CHARS.end()).unwrap_or(u32::MAX),
        hint,
        value: String::new(),
        error: None,
    };
    field.with_errors(complaints)
}

/// Sends a person on with a session that is new, whatever cookies the browser came with. One it had before ends here.
pub(crate) async fn let_in(
    web: &Web,
    headers: &HeaderMap,
    token: &SessionToken,
    next: &Next,
) -> Result<Response, Problem> {
    if let Some(former) = web.cookies.get(Cookie::Session, headers).and_then(SessionToken::parse) {
        accounts::sign_out(&web.core, &former).await?;
    }
    let agent = headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
    accounts::note_agent(&web.core, token, agent).await?;
    let mut response = see_other(next.as_str()).into_response();
    let headers = response.headers_mut();
    headers.append(SET_COOKIE, web.cookies.set(Cookie::Session, token.expose()));
    headers.append(SET_COOKIE, web.cookies.end(Cookie::Visit));
    Ok(response)
}
