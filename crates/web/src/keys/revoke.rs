//! `/teams/{team}/keys/{key}/revoke`

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_domain::ids::KeyId;
use grabd_engine::accounts::{self, TeamError};

use super::path;
use crate::Web;
use crate::confirm::{Question, ask};
use crate::frame::{Client, see_other};
use crate::problem::Problem;
use crate::sent::Sent;
use crate::session::sign_in_first;
use crate::teams;

/// Asks whether to.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    client: Client,
    Path((team, key)): Path<(String, String)>,
    request: Request,
) -> Result<Response, Problem> {
    web.limits.pages.take(client.0)?;
    let Some(person) = web.signed_in(request.headers()).await? else {
        return Ok(see_other(&sign_in_first(request.uri().path())));
    };
    let team = web.my_team(&person.session, &team).await?;
    let id = parse(&key)?;
    let keys = accounts::list_keys(&web.core, person.session.person.id, team.team).await?;
    let key = keys.into_iter().find(|key| key.id == id && key.revoked_at.is_none()).ok_or(TeamError::Unknown)?;
    let question = Question {
        deed: "Revoke the key",
        what: &key.name,
        consequences: &[
            "Whatever still uses it is refused from its next request on.",
            "It cannot be brought back. Captures that were made with it stay.",
        ],
        button: "Revoke",
        action: format!("{}/{id}/revoke", path(team.team)),
        back: path(team.team),
        here: teams::PATH,
    };
    Ok(ask(&web, &person.session, &question))
}

/// Revokes it.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    client: Client,
    Path((team, key)): Path<(String, String)>,
    request: Request,
) -> Result<Response, Problem> {
    let Sent { person, form: _ } = web.sent(&web.limits.pages, client, request).await?;
    let team = web.my_team(&person.session, &team).await?;
    accounts::revoke_key(&web.core, person.session.person.id, team.team, parse(&key)?).await?;
    Ok(see_other(&format!("{}?revoked", path(team.team))))
}

fn parse(key: &str) -> Result<KeyId, TeamError> {
    key.parse().map_err(|_| TeamError::Unknown)
}
