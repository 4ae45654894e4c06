//! `/teams/{team}/secrets`: the secrets in use that former members know. Also the list of what a leaving member knows, on
//! the pages that ask for confirmation.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use grabd_domain::ids::{TeamId, UserId};
use grabd_engine::accounts::{self, RemainingSecret, TeamError, TeamSecret};
use http::StatusCode;

use crate::environments::environment_name;
use crate::extract::{MyTeamPage, QueryForm};
use crate::page::{Layout, page};
use crate::paths;
use crate::problem::Problem;
use crate::state::Web;
use crate::time_format::Moment;

#[derive(Template)]
#[template(path = "team_secrets.html")]
struct SecretsPage<'a> {
    layout: Layout,
    team_name: &'a str,
    is_removed: bool,
    secrets: Vec<SecretRow>,
    back: String,
}

/// A secret in a list.
pub(crate) struct SecretRow {
    /// Unique on the page.
    pub(crate) id: String,
    pub(crate) kind: &'static str,
    pub(crate) name: String,
    pub(crate) environment: &'static str,
    /// Who has seen it. Empty if that is not known.
    pub(crate) known_to: String,
    /// `None`: it was not recorded who saw it.
    pub(crate) seen: Option<Moment>,
    /// The page that replaces it, and the label of its link.
    pub(crate) path: String,
    pub(crate) action: &'static str,
}

impl SecretRow {
    fn of(team: TeamId, secret: RemainingSecret) -> Self {
        let RemainingSecret { secret, environment, name, known_to, seen_at } = secret;
        let page = |page: String| paths::team_page(team, &page);
        let (kind, id, path, action) = match secret {
            TeamSecret::Key(key) => ("API key", format!("key-{key}"), page(format!("keys/{key}/revoke")), "Revoke"),
            TeamSecret::Link(key) => {
                ("Link secret", format!("link-{key}"), page(format!("keys/{key}/link/replace")), "Replace")
            }
            TeamSecret::Webhook(webhook) => {
                ("Webhook secret", format!("webhook-{webhook}"), page(format!("webhooks/{webhook}/secret")), "Rotate")
            }
        };
        let known_to = known_to.map(|email| email.to_string()).unwrap_or_default();
        let (environment, seen) = (environment_name(environment), seen_at.map(Moment::from));
        Self { id: format!("{id}-{known_to}"), kind, name, environment, known_to, seen, path, action }
    }
}

/// Shows the list.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    MyTeamPage { person, team }: MyTeamPage,
    QueryForm(query): QueryForm,
) -> Result<Response, Problem> {
    let me = person.session.person.id;
    let template = SecretsPage {
        layout: web.team_admin_layout(&person.session, team.team, "people").await?,
        team_name: &team.name,
        is_removed: query.has("removed"),
        secrets: of_former_members(&web, me, team.team).await?,
        back: paths::people(team.team),
    };
    Ok(page(StatusCode::OK, &template))
}

/// The secrets in use that former members know.
pub(super) async fn of_former_members(web: &Web, me: UserId, team: TeamId) -> Result<Vec<SecretRow>, TeamError> {
    let secrets = accounts::list_secrets_of_former_members(&web.core, me, team).await?;
    Ok(secrets.into_iter().map(|secret| SecretRow::of(team, secret)).collect())
}

/// The secrets in use that a member knows, or may know.
pub(super) async fn known_to(web: &Web, team: TeamId, member: UserId) -> Result<Vec<SecretRow>, Problem> {
    let secrets = accounts::list_member_secrets(&web.core, team, member).await?;
    Ok(secrets.into_iter().map(|secret| SecretRow::of(team, secret)).collect())
}
