//! Sign-up, sign-in, sign-out and password reset: one file per page.

pub(crate) mod code;
pub(crate) mod forgotten;
pub(crate) mod new_password;
pub(crate) mod passkey;
pub(crate) mod sign_out;
pub(crate) mod sign_up;
pub(crate) mod verify_email;
pub(crate) mod with_password;

use axum::response::{IntoResponse, Response};
use grabd_domain::credentials::{DeviceToken, SessionToken};
use grabd_engine::accounts::{self, SignInOutcome, SignInSource};
use http::HeaderMap;
use http::header::{SET_COOKIE, USER_AGENT};

use crate::client_ip::ClientIp;
use crate::cookies::Cookie;
use crate::form::Form;
use crate::next::NextPath;
use crate::paths::SIGN_IN_CODE;
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

/// Starts the session of a sign-in, or asks for the code of the second factor.
pub(crate) async fn continue_sign_in(
    web: &Web,
    client: ClientIp,
    headers: &HeaderMap,
    outcome: SignInOutcome,
    next: &NextPath,
) -> Result<Response, Problem> {
    match outcome {
        SignInOutcome::SignedIn(token) => start_session(web, client, headers, &token, next).await,
        SignInOutcome::CodeNeeded(pending) => {
            let query = Form::from_iter([("next", next.as_str())]).to_query();
            let mut response = see_other(&format!("{SIGN_IN_CODE}?{query}"));
            let cookie = web.cookies.set(Cookie::PendingSignIn, pending.expose());
            response.headers_mut().append(SET_COOKIE, cookie);
            Ok(response)
        }
    }
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
    let is_pending = web.cookies.get(Cookie::PendingSignIn, headers).is_some();
    let mut response = see_other(next.as_str()).into_response();
    let headers = response.headers_mut();
    headers.append(SET_COOKIE, web.cookies.set(Cookie::Session, token.expose()));
    headers.append(SET_COOKIE, web.cookies.set(Cookie::Device, device.expose()));
    headers.append(SET_COOKIE, web.cookies.remove(Cookie::Visit));
    if is_pending {
        headers.append(SET_COOKIE, web.cookies.remove(Cookie::PendingSignIn));
    }
    Ok(response)
}
