//! `/teams/{team}/keys/{key}/link`: shows what signs a key's links, after a confirmation.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use grabd_domain::ids::KeyId;
use grabd_engine::accounts::{self, Session, TeamError, TeamKey, UserTeam};
use grabd_engine::links::{self, LinkCredentials};
use http::StatusCode;

use super::path;
use crate::confirm::{Confirmation, confirm_page};
use crate::extract::{MyTeamForm, MyTeamPage};
use crate::page::{Layout, page};
use crate::problem::Problem;
use crate::state::Web;

#[derive(Template)]
#[template(path = "key_link.html")]
struct KeyLinkPage<'a> {
    layout: Layout,
    name: &'a str,
    link_key: String,
    secret: &'a str,
    base_url: &'a str,
    replace: String,
    back: String,
}

/// Asks for confirmation.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    MyTeamPage { user, team }: MyTeamPage,
    Path((_, key)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let key = find(&web, &user.session, &team, &key).await?;
    let confirmation = Confirmation {
        title: "Show the link secret of",
        subject: &key.name,
        consequences: &[
            "Anyone with the secret can make links that capture pages and spend the credits of the team.",
            "The audit trail records that you have seen it.",
        ],
        button: "Show secret",
        is_final: false,
        action: format!("{}/{}/link", path(team.team), key.id),
        back: path(team.team),
    };
    let layout = web.team_admin_layout(&user.session, team.team, "keys").await?;
    Ok(confirm_page(layout, &user.session, &confirmation))
}

/// Shows the secret. A key that has none gets one.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    Path((_, key)): Path<(String, String)>,
    MyTeamForm { user, team, .. }: MyTeamForm,
) -> Result<Response, Problem> {
    let found = find(&web, &user.session, &team, &key).await?;
    let revealed = links::reveal(&web.core, user.session.user.id, team.team, found.id).await?;
    shown(&web, &user.session, &team, &found, &revealed).await
}

/// The page with a secret.
pub(super) async fn shown(
    web: &Web,
    session: &Session,
    team: &UserTeam,
    found: &TeamKey,
    LinkCredentials { key, secret }: &LinkCredentials,
) -> Result<Response, Problem> {
    let layout = web.team_admin_layout(session, team.team, "keys").await?;
    let template = KeyLinkPage {
        layout: Layout { script: Some(web.assets.key.path.clone()), ..layout },
        name: &found.name,
        link_key: key.to_string(),
        secret: secret.expose(),
        base_url: &web.core.oauth().base_url,
        replace: format!("{}/{}/link/replace", path(team.team), found.id),
        back: path(team.team),
    };
    Ok(page(StatusCode::OK, &template))
}

/// The key of the team with this id, unless it was revoked.
pub(super) async fn find(web: &Web, session: &Session, team: &UserTeam, key: &str) -> Result<TeamKey, TeamError> {
    let id: KeyId = key.parse().map_err(|_| TeamError::NotFound)?;
    let keys = accounts::list_keys(&web.core, session.user.id, team.team).await?;
    keys.into_iter().find(|key| key.id == id && key.revoked_at.is_none()).ok_or(TeamError::NotFound)
}
