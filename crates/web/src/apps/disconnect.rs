//! `/apps/{grant}/disconnect`

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_domain::ids::GrantId;
use grabd_engine::oauth;

use super::PATH;
use crate::Web;
use crate::forgery;
use crate::form::Form;
use crate::frame::{Client, see_other};
use crate::problem::Problem;

const UNKNOWN: &str = "You have no such app, or it is disconnected already.";

/// Ends what the app may do, at once.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    client: Client,
    Path(grant): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    web.limits.pages.take(client.0)?;
    let (head, body) = request.into_parts();
    let sent = Form::read(&head.headers, body).await?;
    let Some(person) = web.signed_in(&head.headers).await? else { return Err(Problem::signed_out()) };
    forgery::check(&head.headers, &sent, &person.session.csrf)?;
    let Ok(grant) = grant.parse::<GrantId>() else { return Err(Problem::not_found(UNKNOWN)) };
    match oauth::disconnect(&web.core, person.session.person.id, grant).await? {
        true => Ok(see_other(&format!("{PATH}?disconnected"))),
        false => Err(Problem::not_found(UNKNOWN)),
    }
}
