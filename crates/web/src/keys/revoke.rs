//! `/teams/{team}/keys/{key}/revoke`: revokes a key after a confirmation.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use grabd_domain::ids::KeyId;
use grabd_engine::accounts::{self, TeamError};

use super::path;
use crate::confirm::{Confirmation, confirm_page};
use crate::extract::{MyTeamForm, MyTeamPage};
use crate::problem::Problem;
use crate::response::see_other;
use crate::state::Web;

/// Asks for confirmation.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    MyTeamPage { user, team }: MyTeamPage,
    Path((_, key)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let id = parse(&key)?;
    let keys = accounts::list_keys(&web.core, user.session.user.id, team.team).await?;
    let key = keys.into_iter().find(|key| key.id == id && key.revoked_at.is_none()).ok_or(TeamError::NotFound)?;
    let confirmation = Confirmation {
        title: "Revoke key",
        subject: &key.name,
        consequences: &[
            "Requests with this key are refused immediately.",
            "This cannot be undone. Captures, monitors, site jobs and webhooks made with it are kept.",
        ],
        button: "Revoke",
        is_final: true,
        action: format!("{}/{id}/revoke", path(team.team)),
        back: path(team.team),
    };
    let layout = web.team_admin_layout(&user.session, team.team, "keys").await?;
    Ok(confirm_page(layout, &user.session, &confirmation))
}

/// Revokes the key.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    Path((_, key)): Path<(String, String)>,
    MyTeamForm { user, team, .. }: MyTeamForm,
) -> Result<Response, Problem> {
    accounts::revoke_key(&web.core, user.session.user.id, team.team, parse(&key)?).await?;
    Ok(see_other(&format!("{}?revoked", path(team.team))))
}

fn parse(key: &str) -> Result<KeyId, TeamError> {
    key.parse().map_err(|_| TeamError::NotFound)
}
