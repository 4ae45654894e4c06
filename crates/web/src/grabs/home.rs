//! `/grabs`: redirects to the gallery of the team that the user joined first.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use grabd_engine::accounts;

use crate::extract::SignedInPage;
use crate::paths;
use crate::problem::Problem;
use crate::response::see_other;
use crate::state::Web;

/// Redirects to the gallery.
pub(crate) async fn show(State(web): State<Arc<Web>>, SignedInPage(person): SignedInPage) -> Result<Response, Problem> {
    let teams = accounts::list_memberships(&web.core, person.session.person.id).await?;
    match teams.first() {
        Some(first) => Ok(see_other(&paths::team_page(first.team, "grabs"))),
        None if web.has_only_suspended_teams(&person.session).await? => Err(Problem::team_suspended()),
        None => {
            Err(Problem::not_found("You are not a member of a team yet. Create a team or contact your administrator."))
        }
    }
}
