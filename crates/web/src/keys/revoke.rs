//! `/teams/{team}/keys/{key}/revoke`: revokes a key after a confirmation.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_domain::ids::KeyId;
use grabd_engine::accounts::{self, TeamError};

use super::path;
use crate::Web;
use crate::confirm::{Confirmation, confirm_page};
use crate::problem::Problem;
use crate::response::{ClientIp, see_other};
use crate::session::sign_in_url;
use crate::submitted_form::SubmittedForm;
use crate::teams;

/// Asks for confirmation.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    client: ClientIp,
    Path((team, key)): Path<(String, String)>,
    request: Request,
) -> Result<Response, Problem> {
    web.limits.pages.take(client.0)?;
    let Some(person) = web.signed_in(request.headers()).await? else {
        return Ok(see_other(&sign_in_url(request.uri().path())));
    };
    let team = web.my_team(&person.session, &team).await?;
    let id = parse(&key)?;
    let keys = accounts::list_keys(&web.core, person.session.person.id, team.team).await?;
    let key = keys.into_iter().find(|key| key.id == id && key.revoked_at.is_none()).ok_or(TeamError::NotFound)?;
    let confirmation = Confirmation {
        title: "Revoke key",
        subject: &key.name,
        consequences: &[
            "Requests with this key are refused immediately.",
            "This cannot be undone. Captures made with it are kept.",
        ],
        button: "Revoke",
        action: format!("{}/{id}/revoke", path(team.team)),
        back: path(team.team),
        here: teams::PATH,
    };
    Ok(confirm_page(&web, &person.session, &confirmation))
}

/// Revokes the key.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    client: ClientIp,
    Path((team, key)): Path<(String, String)>,
    request: Request,
) -> Result<Response, Problem> {
    let SubmittedForm { person, form: _ } = web.submitted_form(&web.limits.pages, client, request).await?;
    let team = web.my_team(&person.session, &team).await?;
    accounts::revoke_key(&web.core, person.session.person.id, team.team, parse(&key)?).await?;
    Ok(see_other(&format!("{}?revoked", path(team.team))))
}

fn parse(key: &str) -> Result<KeyId, TeamError> {
    key.parse().map_err(|_| TeamError::NotFound)
}
