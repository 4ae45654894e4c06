//! `/teams/{team}/members/{user}/role` and `/teams/{team}/members/{user}/remove`: changes roles and removes members.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use grabd_domain::accounts::Role;
use grabd_domain::ids::UserId;
use grabd_engine::accounts::{self, TeamError};

use super::secrets;
use super::users::redirect_with_notice;
use crate::confirm::{Confirmation, confirm_page_with_secrets};
use crate::extract::{MyTeamForm, MyTeamPage};
use crate::paths::{self, TEAMS};
use crate::problem::Problem;
use crate::response::see_other;
use crate::state::Web;
use http::Uri;

/// Changes the role of a member.
pub(crate) async fn set_role(
    State(web): State<Arc<Web>>,
    Path((_, member)): Path<(String, String)>,
    MyTeamForm { user, team, form, .. }: MyTeamForm,
) -> Result<Response, Problem> {
    let Some(role) = Role::ALL.into_iter().find(|role| role.as_str() == form.get("role")) else {
        return Err(Problem::bad_request("Unknown role", "The role must be owner or member.", ""));
    };
    accounts::set_role(&web.core, user.session.user.id, team.team, parse(&member)?, role).await?;
    Ok(redirect_with_notice(&team, "changed"))
}

/// Asks for confirmation to remove a member.
pub(crate) async fn confirm_removal(
    State(web): State<Arc<Web>>,
    MyTeamPage { user, team }: MyTeamPage,
    Path((_, member)): Path<(String, String)>,
    uri: Uri,
) -> Result<Response, Problem> {
    if team.role != Role::Owner {
        return Err(TeamError::NotOwner.into());
    }
    let id = parse(&member)?;
    let members = accounts::list_members(&web.core, user.session.user.id, team.team).await?;
    let member = members.into_iter().find(|member| member.user == id).ok_or(TeamError::NotFound)?;
    let confirmation = Confirmation {
        title: "Remove",
        subject: member.email.as_str(),
        consequences: &[
            "They and the apps they connected lose access to the team immediately.",
            "API keys, webhooks and signed links belong to the team and keep working. Below are those whose secrets they \
             have seen, or may have. Replace them now, or on the page that follows.",
        ],
        button: "Remove",
        is_final: true,
        action: uri.path().to_owned(),
        back: paths::users(team.team),
    };
    let layout = web.team_admin_layout(&user.session, team.team, "people").await?;
    let known = secrets::known_to(&web, team.team, id).await?;
    Ok(confirm_page_with_secrets(layout, &user.session, &confirmation, &known))
}

/// Removes a member. The page that follows has the secrets in use that they know.
pub(crate) async fn remove(
    State(web): State<Arc<Web>>,
    Path((_, member)): Path<(String, String)>,
    MyTeamForm { user, team, .. }: MyTeamForm,
) -> Result<Response, Problem> {
    let me = user.session.user.id;
    let id = parse(&member)?;
    accounts::remove_member(&web.core, me, team.team, id).await?;
    Ok(see_other(&match id == me {
        true => format!("{TEAMS}?left"),
        false => format!("{}?removed", paths::team_page(team.team, "secrets")),
    }))
}

fn parse(user: &str) -> Result<UserId, TeamError> {
    user.parse().map_err(|_| TeamError::NotFound)
}
