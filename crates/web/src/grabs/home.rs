//! `/grabs`: on to the team that the person joined first, where the others are one step away.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use grabd_engine::accounts;

use super::PATH;
use crate::Web;
use crate::frame::{Client, see_other};
use crate::problem::Problem;
use crate::session::sign_in_first;
use crate::team;

/// Sends people on.
pub(crate) async fn show(State(web): State<Arc<Web>>, client: Client, request: Request) -> Result<Response, Problem> {
    web.limits.pages.take(client.0)?;
    let Some(person) = web.signed_in(request.headers()).await? else { return Ok(see_other(&sign_in_first(PATH))) };
    let teams = accounts::list_memberships(&web.core, person.session.person.id).await?;
    match teams.first() {
        Some(first) => Ok(see_other(&team::path(first.team, "grabs"))),
        None => Err(Problem::not_found(
            "You are in no team, and captures belong to teams. Ask whoever runs this grabd to put you into one.",
        )),
    }
}
