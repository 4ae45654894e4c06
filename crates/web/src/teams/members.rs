//! `/teams/{team}/members/{user}/role` and `/teams/{team}/members/{user}/remove`: changes roles and removes members.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use grabd_domain::accounts::Role;
use grabd_domain::ids::UserId;
use grabd_domain::permissions::Permission;
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

/// Characters of an unknown role that its error shows.
const MAX_SHOWN: usize = 40;

/// Changes the role of a member. If they lose access to secrets, the page that follows has those in use that they know. An
/// owner who gives up that role sees the list of members.
pub(crate) async fn set_role(
    State(web): State<Arc<Web>>,
    Path((_, member)): Path<(String, String)>,
    MyTeamForm { user, team, form, .. }: MyTeamForm,
) -> Result<Response, Problem> {
    let Some(role) = Role::parse(form.get("role")) else { return Err(unknown_role(form.get("role"))) };
    let (me, id) = (user.session.user.id, parse(&member)?);
    accounts::set_role(&web.core, me, team.team, id, role).await?;
    if role.allows(Permission::ManageKeys) || id == me {
        return Ok(redirect_with_notice(&team, "changed"));
    }
    Ok(see_other(&format!("{}?role", paths::team_page(team.team, "secrets"))))
}

/// Asks for confirmation to remove a member.
pub(crate) async fn confirm_removal(
    State(web): State<Arc<Web>>,
    MyTeamPage { user, team }: MyTeamPage,
    Path((_, member)): Path<(String, String)>,
    uri: Uri,
) -> Result<Response, Problem> {
    let id = parse(&member)?;
    let members = accounts::list_members(&web.core, user.session.user.id, team.team).await?;
    let member = members.into_iter().find(|member| member.user == id).ok_or(TeamError::NotFound)?;
    let known = secrets::known_to(&web, team.team, id).await?;
    let about_secrets = if known.is_empty() {
        "API keys, webhooks and signed links belong to the team and keep working."
    } else {
        "API keys, webhooks and signed links belong to the team and keep working. Below are those whose secrets they have \
         seen, or may have. Replace them now, or on the page that follows."
    };
    let confirmation = Confirmation {
        title: "Remove",
        subject: member.email.as_str(),
        consequences: &["They and the apps they connected lose access to the team immediately.", about_secrets],
        button: "Remove",
        is_final: true,
        action: uri.path().to_owned(),
        back: paths::users(team.team),
    };
    let layout = web.team_admin_layout(&user.session, team.team, "people").await?;
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

/// The error for a role that does not exist.
pub(super) fn unknown_role(given: &str) -> Problem {
    let allowed: Vec<&str> = Role::ALL.into_iter().map(Role::as_str).collect();
    let given: String = given.chars().take(MAX_SHOWN).collect();
    let message = format!("The role must be one of {}; got “{given}”.", allowed.join(", "));
    Problem::bad_request("Unknown role", message, "Nothing was changed.")
}

fn parse(user: &str) -> Result<UserId, TeamError> {
    user.parse().map_err(|_| TeamError::NotFound)
}
