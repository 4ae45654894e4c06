//! `/apps/{grant}/disconnect`: revokes a grant.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_domain::ids::GrantId;
use grabd_engine::oauth;

use super::PATH;
use crate::Web;
use crate::csrf;
use crate::form::Form;
use crate::problem::Problem;
use crate::response::{ClientIp, see_other};

const UNKNOWN: &str = "This app does not exist or is already disconnected.";

/// Revokes the app's access immediately.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    client: ClientIp,
    Path(grant): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    web.limits.pages.take(client.0)?;
    let (head, body) = request.into_parts();
    let input = Form::read(&head.headers, body).await?;
    let Some(person) = web.signed_in(&head.headers).await? else { return Err(Problem::signed_out()) };
    csrf::check(&head.headers, &input, &person.session.csrf)?;
    let Ok(grant) = grant.parse::<GrantId>() else { return Err(Problem::not_found(UNKNOWN)) };
    match oauth::disconnect(&web.core, person.session.person.id, grant).await? {
        true => Ok(see_other(&format!("{PATH}?disconnected"))),
        false => Err(Problem::not_found(UNKNOWN)),
    }
}
