//! `/sign-out`: ends the session.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use grabd_engine::accounts;
use http::header::SET_COOKIE;

use super::SIGN_IN;
use crate::Web;
use crate::cookies::Cookie;
use crate::csrf;
use crate::form::Form;
use crate::problem::Problem;
use crate::response::{ClientIp, see_other};

/// Ends the session and removes its cookie.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    client: ClientIp,
    request: Request,
) -> Result<Response, Problem> {
    web.limits.pages.take(client.0)?;
    let (head, body) = request.into_parts();
    let input = Form::read(&head.headers, body).await?;
    if let Some(person) = web.signed_in(&head.headers).await? {
        csrf::check(&head.headers, &input, &person.session.csrf)?;
        accounts::sign_out(&web.core, &person.token).await?;
    }
    let mut response = see_other(&format!("{SIGN_IN}?signed_out"));
    response.headers_mut().append(SET_COOKIE, web.cookies.remove(Cookie::Session));
    Ok(response)
}
