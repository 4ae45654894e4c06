//! `/sign-out`: ends the session.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use grabd_engine::accounts;
use http::header::SET_COOKIE;

use crate::client_ip::ClientIp;
use crate::cookies::Cookie;
use crate::extract::{UncheckedForm, take_page};
use crate::paths::SIGN_IN;
use crate::problem::Problem;
use crate::response::see_other;
use crate::state::Web;

/// Ends the session and removes its cookie.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    client: ClientIp,
    request: Request,
) -> Result<Response, Problem> {
    take_page(&web, client, request.headers()).await?;
    // Without a session there is no token to check and nothing to end.
    let sent = UncheckedForm::read(request).await?;
    if let Some(user) = web.signed_in(sent.headers()).await? {
        sent.check(&user.session)?;
        accounts::sign_out(&web.core, &user.token).await?;
    }
    let mut response = see_other(&format!("{SIGN_IN}?signed_out"));
    response.headers_mut().append(SET_COOKIE, web.cookies.remove(Cookie::Session));
    Ok(response)
}
