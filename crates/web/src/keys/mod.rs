//! The API keys of a team.

pub(crate) mod create;
mod examples;
pub(crate) mod link;
pub(crate) mod list;
pub(crate) mod replace_link;
pub(crate) mod revoke;

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use grabd_domain::ids::TeamId;
use grabd_domain::permissions::Permission;
use grabd_engine::accounts;

use crate::extract::SignedInPage;
use crate::paths;
use crate::problem::Problem;
use crate::response::see_other;
use crate::state::Web;

/// Redirects to the keys of the user's first team.
pub(crate) const PATH: &str = "/keys";

/// The form's fields for the restrictions of a key.
const SCOPES: &str = "scopes";
const DAYS: &str = "days";
/// The field with the id of the form, which makes one key only.
const ONCE: &str = "once";

/// The path of a team's keys.
fn path(team: TeamId) -> String {
    format!("{}/keys", paths::team(team))
}

/// `/keys`: redirects to the keys of the team that the user joined first of those whose keys they may manage.
pub(crate) async fn show(State(web): State<Arc<Web>>, SignedInPage(user): SignedInPage) -> Result<Response, Problem> {
    let teams = accounts::list_teams(&web.core, user.session.user.id).await?;
    let permitted = teams.iter().find(|team| team.role.allows(Permission::ManageKeys));
    Ok(match permitted.or(teams.first()) {
        Some(first) => see_other(&path(first.team)),
        None => see_other(paths::TEAMS),
    })
}
