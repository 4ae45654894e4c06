//! `/teams/{team}/secrets`: the secrets in use that people know who have no access to them any more. Also the list of what a
//! leaving member knows, on the pages that ask for confirmation.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use grabd_domain::ids::{TeamId, UserId};
use grabd_engine::accounts::{self, TeamError};
use http::StatusCode;

use crate::extract::{MyTeamPage, QueryForm};
use crate::page::{Layout, page};
use crate::paths;
use crate::problem::Problem;
use crate::secret_row::SecretRow;
use crate::state::Web;

#[derive(Template)]
#[template(path = "team_secrets.html")]
struct SecretsPage<'a> {
    layout: Layout,
    team_name: &'a str,
    notice: &'static str,
    secrets: Vec<SecretRow>,
    back: String,
}

/// Shows the list.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    MyTeamPage { user, team }: MyTeamPage,
    QueryForm(query): QueryForm,
) -> Result<Response, Problem> {
    let me = user.session.user.id;
    let template = SecretsPage {
        layout: web.team_admin_layout(&user.session, team.team, "people").await?,
        team_name: &team.name,
        notice: match (query.has("removed"), query.has("role")) {
            (true, _) => "Member removed.",
            (false, true) => "Role changed.",
            (false, false) => "",
        },
        secrets: of_former_members(&web, me, team.team).await?,
        back: paths::users(team.team),
    };
    Ok(page(StatusCode::OK, &template))
}

/// The secrets in use that people know who are no members any more, or whose role has no access to secrets.
pub(super) async fn of_former_members(web: &Web, me: UserId, team: TeamId) -> Result<Vec<SecretRow>, TeamError> {
    let secrets = accounts::list_secrets_of_former_members(&web.core, me, team).await?;
    Ok(secrets.into_iter().map(|secret| SecretRow::of(team, secret)).collect())
}

/// The secrets in use that a member knows, or may know.
pub(super) async fn known_to(web: &Web, team: TeamId, member: UserId) -> Result<Vec<SecretRow>, Problem> {
    let secrets = accounts::list_member_secrets(&web.core, team, member).await?;
    Ok(secrets.into_iter().map(|secret| SecretRow::of(team, secret)).collect())
}
