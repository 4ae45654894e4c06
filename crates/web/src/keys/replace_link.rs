//! `/teams/{team}/keys/{key}/link/replace`: replaces what signs a key's links, after a confirmation.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use grabd_engine::links;

use super::link::{find, shown};
use super::path;
use crate::confirm::{Confirmation, confirm_page};
use crate::extract::{MyTeamForm, MyTeamPage};
use crate::problem::Problem;
use crate::state::Web;

/// Asks for confirmation.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    MyTeamPage { user, team }: MyTeamPage,
    Path((_, key)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let key = find(&web, &user.session, &team, &key).await?;
    let confirmation = Confirmation {
        title: "Replace the link secret of",
        subject: &key.name,
        consequences: &[
            "Links that the present secret signed stop working immediately, also published ones.",
            "The key itself and its link key stay the same. The new secret is shown on the next page.",
        ],
        button: "Replace secret",
        is_final: true,
        action: format!("{}/{}/link/replace", path(team.team), key.id),
        back: path(team.team),
    };
    let layout = web.team_admin_layout(&user.session, team.team, "keys").await?;
    Ok(confirm_page(layout, &user.session, &confirmation))
}

/// Replaces the secret, and shows the new one.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    Path((_, key)): Path<(String, String)>,
    MyTeamForm { user, team, .. }: MyTeamForm,
) -> Result<Response, Problem> {
    let found = find(&web, &user.session, &team, &key).await?;
    let replaced = links::replace(&web.core, user.session.user.id, team.team, found.id).await?;
    shown(&web, &user.session, &team, &found, &replaced).await
}
