//! The API keys of a team.

pub(crate) mod create;
pub(crate) mod link;
pub(crate) mod list;
pub(crate) mod revoke;

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use grabd_domain::ids::TeamId;
use grabd_engine::accounts;

use crate::Web;
use crate::problem::Problem;
use crate::response::{ClientIp, see_other};
use crate::session::sign_in_url;
use crate::teams;

/// Redirects to the keys of the user's first team.
pub(crate) const PATH: &str = "/keys";

/// The form's fields for the restrictions of a key.
const SCOPES: &str = "scopes";
const DAYS: &str = "days";

/// The path of a team's keys.
fn path(team: TeamId) -> String {
    format!("{}/keys", teams::path(team))
}

/// `/keys`: redirects to the keys of the team that the user joined first.
pub(crate) async fn show(State(web): State<Arc<Web>>, client: ClientIp, request: Request) -> Result<Response, Problem> {
    web.limits.pages.take(client.0)?;
    let Some(person) = web.signed_in(request.headers()).await? else { return Ok(see_other(&sign_in_url(PATH))) };
    let teams = accounts::list_teams(&web.core, person.session.person.id).await?;
    Ok(match teams.first() {
        Some(first) => see_other(&path(first.team)),
        None => see_other(teams::PATH),
    })
}
