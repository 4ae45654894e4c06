//! `/teams/{team}/leave`: leaves a team after a confirmation.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use grabd_domain::permissions::Permission;
use grabd_engine::accounts;

use super::secrets;
use crate::confirm::{Confirmation, confirm_page_with_secrets};
use crate::extract::{MyTeamForm, MyTeamPage};
use crate::paths::{self, TEAMS};
use crate::problem::Problem;
use crate::response::see_other;
use crate::state::Web;

/// Asks for confirmation.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    MyTeamPage { user, team }: MyTeamPage,
) -> Result<Response, Problem> {
    // Names of keys and URLs of webhooks are for those who may see them.
    let known = match team.role.allows(Permission::ManageKeys) {
        true => secrets::known_to(&web, team.team, user.session.user.id).await?,
        false => Vec::new(),
    };
    let about_secrets = if known.is_empty() {
        "API keys, webhooks and signed links belong to the team and keep working."
    } else {
        "API keys, webhooks and signed links belong to the team and keep working. Below are those whose secrets you have \
         seen, or may have. Replace them before you leave, or tell an owner: the Members page lists them."
    };
    let confirmation = Confirmation {
        title: "Leave team",
        subject: &team.name,
        consequences: &[
            "You and the apps you connected lose access to its captures, keys and credits immediately.",
            "To rejoin, you need a new invitation.",
            about_secrets,
        ],
        button: "Leave team",
        is_final: true,
        action: format!("{}/leave", paths::team(team.team)),
        back: paths::users(team.team),
    };
    let layout = web.team_admin_layout(&user.session, team.team, "people").await?;
    Ok(confirm_page_with_secrets(layout, &user.session, &confirmation, &known))
}

/// Leaves the team.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    MyTeamForm { user, team, .. }: MyTeamForm,
) -> Result<Response, Problem> {
    accounts::leave(&web.core, user.session.user.id, team.team).await?;
    Ok(see_other(&format!("{TEAMS}?left")))
}
