//! `/sign-out`

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use grabd_engine::accounts;
use http::header::SET_COOKIE;

use super::SIGN_IN;
use crate::Web;
use crate::cookies::Cookie;
use crate::forgery;
use crate::form::Form;
use crate::frame::{Client, see_other};
use crate::problem::Problem;

/// Ends the session, in the database and in the browser.
pub(crate) async fn submit(State(web): State<Arc<Web>>, client: Client, request: Request) -> Result<Response, Problem> {
    web.limits.pages.take(client.0)?;
    let (head, body) = request.into_parts();
    let sent = Form::read(&head.headers, body).await?;
    if let Some(person) = web.signed_in(&head.headers).await? {
        forgery::check(&head.headers, &sent, &person.session.csrf)?;
        accounts::sign_out(&web.core, &person.token).await?;
    }
    let mut response = see_other(&format!("{SIGN_IN}?signed_out"));
    response.headers_mut().append(SET_COOKIE, web.cookies.end(Cookie::Session));
    Ok(response)
}
