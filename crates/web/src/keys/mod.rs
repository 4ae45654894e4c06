//! The API keys of a team.

pub(crate) mod list;
pub(crate) mod make;
pub(crate) mod revoke;

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use grabd_domain::ids::TeamId;
use grabd_engine::accounts;

use crate::Web;
use crate::frame::{Client, see_other};
use crate::problem::Problem;
use crate::session::sign_in_first;
use crate::teams;

/// The path that leads to the keys of the person's first team.
pub(crate) const PATH: &str = "/keys";

/// The path of a team's keys.
fn path(team: TeamId) -> String {
    format!("{}/keys", teams::path(team))
}

/// `/keys`: on to the team that the person joined first, where the others are one step away.
pub(crate) async fn show(State(web): State<Arc<Web>>, client: Client, request: Request) -> Result<Response, Problem> {
    web.limits.pages.take(client.0)?;
    let Some(person) = web.signed_in(request.headers()).await? else { return Ok(see_other(&sign_in_first(PATH))) };
    let teams = accounts::list_teams(&web.core, person.session.person.id).await?;
    Ok(match teams.first() {
        Some(first) => see_other(&path(first.team)),
        None => see_other(teams::PATH),
    })
}
