//! `/grabs`: redirects to the gallery of the team that the user joined first.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use grabd_engine::accounts;

use super::PATH;
use crate::Web;
use crate::problem::Problem;
use crate::response::{ClientIp, see_other};
use crate::session::sign_in_url;
use crate::team;

/// Redirects to the gallery.
pub(crate) async fn show(State(web): State<Arc<Web>>, client: ClientIp, request: Request) -> Result<Response, Problem> {
    web.limits.pages.take(client.0)?;
    let Some(person) = web.signed_in(request.headers()).await? else { return Ok(see_other(&sign_in_url(PATH))) };
    let teams = accounts::list_memberships(&web.core, person.session.person.id).await?;
    match teams.first() {
        Some(first) => Ok(see_other(&team::path(first.team, "grabs"))),
        None if web.has_only_suspended_teams(&person.session).await? => Err(Problem::team_suspended()),
        None => {
            Err(Problem::not_found("You are not a member of a team yet. Create a team or contact your administrator."))
        }
    }
}
