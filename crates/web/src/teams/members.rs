//! `/teams/{team}/members/{user}/role` and `/teams/{team}/members/{user}/remove`

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_domain::accounts::Role;
use grabd_domain::ids::UserId;
use grabd_engine::accounts::{self, TeamError};

use super::people::back;
use super::{PATH, people_path};
use crate::Web;
use crate::confirm::{Question, ask};
use crate::frame::{Client, see_other};
use crate::problem::Problem;
use crate::sent::Sent;
use crate::session::sign_in_first;

/// Makes somebody an owner or a member.
pub(crate) async fn appoint(
    State(web): State<Arc<Web>>,
    client: Client,
    Path((team, user)): Path<(String, String)>,
    request: Request,
) -> Result<Response, Problem> {
    let Sent { person, form } = web.sent(&web.limits.pages, client, request).await?;
    let team = web.my_team(&person.session, &team).await?;
    let Some(role) = Role::ALL.into_iter().find(|role| role.as_str() == form.one("role")) else {
        return Err(Problem::bad_request("There is no such role", "People are owners or members.", ""));
    };
    accounts::appoint(&web.core, person.session.person.id, team.team, parse(&user)?, role).await?;
    Ok(back(&team, "changed"))
}

/// Asks whether to remove somebody.
pub(crate) async fn ask_to_remove(
    State(web): State<Arc<Web>>,
    client: Client,
    Path((team, user)): Path<(String, String)>,
    request: Request,
) -> Result<Response, Problem> {
    web.limits.pages.take(client.0)?;
    let Some(person) = web.signed_in(request.headers()).await? else {
        return Ok(see_other(&sign_in_first(request.uri().path())));
    };
    let team = web.my_team(&person.session, &team).await?;
    if team.role != Role::Owner {
        return Err(TeamError::NotOwner.into());
    }
    let user = parse(&user)?;
    let members = accounts::list_members(&web.core, person.session.person.id, team.team).await?;
    let member = members.into_iter().find(|member| member.user == user).ok_or(TeamError::Unknown)?;
    let question = Question {
        deed: "Remove",
        what: member.email.as_str(),
        consequences: &[
            "They leave the team, and apps they connected can do nothing for it any more, at once.",
            "Keys belong to the team and go on working. Revoke those that they know and should not use.",
        ],
        button: "Remove",
        action: request.uri().path().to_owned(),
        back: people_path(team.team),
        here: PATH,
    };
    Ok(ask(&web, &person.session, &question))
}

/// Removes them.
pub(crate) async fn remove(
    State(web): State<Arc<Web>>,
    client: Client,
    Path((team, user)): Path<(String, String)>,
    request: Request,
) -> Result<Response, Problem> {
    let Sent { person, form: _ } = web.sent(&web.limits.pages, client, request).await?;
    let team = web.my_team(&person.session, &team).await?;
    let me = person.session.person.id;
    let user = parse(&user)?;
    accounts::dismiss(&web.core, me, team.team, user).await?;
    Ok(if user == me { see_other(&format!("{PATH}?left")) } else { back(&team, "changed") })
}

fn parse(user: &str) -> Result<UserId, TeamError> {
    user.parse().map_err(|_| TeamError::Unknown)
}
