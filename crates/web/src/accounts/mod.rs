//! Sign-up, sign-in, sign-out and password reset: one file per page.

pub(crate) mod forgotten;
pub(crate) mod new_password;
pub(crate) mod sign_in;
pub(crate) mod sign_out;
pub(crate) mod sign_up;
pub(crate) mod verify_email;

use axum::response::{IntoResponse, Response};
use grabd_domain::credentials::{DeviceToken, SessionToken};
use grabd_engine::accounts::{self, SignInSource};
use http::HeaderMap;
use http::header::{SET_COOKIE, USER_AGENT};

use crate::client_ip::ClientIp;
use crate::cookies::Cookie;
use crate::form::Form;
use crate::next::NextPath;
use crate::problem::Problem;
use crate::response::see_other;
use crate::state::Web;

/// The path of the sign-up page.
pub(crate) const SIGN_UP: &str = "/sign-up";
/// The path of the page to request a password reset.
pub(crate) const FORGOTTEN: &str = "/forgotten-password";

/// The default redirect target after sign-in.
const HOME: &str = crate::grabs::PATH;

/// The redirect target in a form or query.
fn next(form: &Form) -> NextPath {
    NextPath::parse(form.get("next"), HOME)
}

/// Where a request comes from, for the limits of wrong passwords.
pub(crate) fn source(web: &Web, client: ClientIp, headers: &HeaderMap) -> SignInSource {
    let device = web.cookies.get(Cookie::Device, headers).and_then(DeviceToken::parse);
    SignInSource { address: client.0, device }
}

/// Sets the cookies of a new session and its device, and redirects to `next`. Ends the session of the request's cookie,
/// if there is one.
pub(crate) async fn start_session(
    web: &Web,
    client: ClientIp,
    headers: &HeaderMap,
    token: &SessionToken,
    next: &NextPath,
) -> Result<Response, Problem> {
    if let Some(previous) = web.cookies.get(Cookie::Session, headers).and_then(SessionToken::parse) {
        accounts::sign_out(&web.core, &previous).await?;
    }
    let agent = headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
    accounts::record_user_agent(&web.core, token, agent).await?;
    let device = accounts::remember_device(&web.core, token, &source(web, client, headers)).await?;
    let mut response = see_other(next.as_str()).into_response();
    let headers = response.headers_mut();
    headers.append(SET_COOKIE, web.cookies.set(Cookie::Session, token.expose()));
    headers.append(SET_COOKIE, web.cookies.set(Cookie::Device, device.expose()));
    headers.append(SET_COOKIE, web.cookies.remove(Cookie::Visit));
    Ok(response)
}
