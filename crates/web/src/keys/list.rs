//! `/teams/{team}/keys`

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_domain::credentials::Environment;
use grabd_engine::accounts::{self, MyTeam, Session, TeamKey};
use http::StatusCode;

use super::path;
use crate::Web;
use crate::apps::list::environment_name;
use crate::form::{Complaint, Field, Form};
use crate::frame::{Client, see_other};
use crate::moment::Moment;
use crate::page::{Frame, page};
use crate::problem::Problem;
use crate::session::sign_in_first;
use crate::teams::name_field;

#[derive(Template)]
#[template(path = "keys.html")]
struct KeysPage<'a> {
    frame: Frame,
    form_token: &'a str,
    team_name: &'a str,
    path: String,
    is_revoked: bool,
    open: Vec<Key>,
    revoked: Vec<Key>,
    name: Field,
    wants_live: bool,
    errors: &'a [Complaint],
}

/// A key as it is shown.
struct Key {
    id: String,
    name: String,
    environment: &'static str,
    /// `sk_live_…3-_9`
    shown: String,
    created: Moment,
    used: Option<Moment>,
    revoked: Option<Moment>,
}

impl From<TeamKey> for Key {
    fn from(key: TeamKey) -> Self {
        let TeamKey { id, environment, name, last4, created_at, last_used_at, revoked_at } = key;
        Self {
            id: id.to_string(),
            name,
            environment: environment_name(environment),
            shown: format!("{}…{last4}", environment.key_prefix()),
            created: created_at.into(),
            used: last_used_at.map(Moment::from),
            revoked: revoked_at.map(Moment::from),
        }
    }
}

/// The list, with the form for another one.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    client: Client,
    Path(team): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    web.limits.pages.take(client.0)?;
    let Some(person) = web.signed_in(request.headers()).await? else {
        return Ok(see_other(&sign_in_first(request.uri().path())));
    };
    let team = web.my_team(&person.session, &team).await?;
    let query = Form::parse(request.uri().query().unwrap_or_default().as_bytes());
    list(&web, &person.session, team, StatusCode::OK, query.has("revoked"), None, &[]).await
}

pub(super) async fn list(
    web: &Web,
    session: &Session,
    team: MyTeam,
    status: StatusCode,
    is_revoked: bool,
    sent: Option<&Form>,
    errors: &[Complaint],
) -> Result<Response, Problem> {
    let keys = accounts::list_keys(&web.core, session.person.id, team.team).await?;
    let (open, revoked): (Vec<_>, Vec<_>) = keys.into_iter().map(Key::from).partition(|key| key.revoked.is_none());
    let template = KeysPage {
        frame: web.frame_about_team(session, team.team, "keys").await?,
        form_token: &session.csrf,
        team_name: &team.name,
        path: path(team.team),
        is_revoked,
        open,
        revoked,
        name: name_field("Name", "Where it is used, such as “build server”.", sent, errors),
        wants_live: sent.is_some_and(|form| form.one("environment") == Environment::Live.as_str()),
        errors,
    };
    Ok(page(status, &template))
}
