//! `/teams/{team}/settings`: the name, the export and the deletion of a team, for its owners.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use grabd_engine::accounts::{Session, UserTeam};
use http::StatusCode;

use crate::extract::{MyTeamPage, QueryForm};
use crate::fields::name_field;
use crate::form::{Field, FieldError};
use crate::page::{Layout, page};
use crate::paths;
use crate::problem::Problem;
use crate::response::see_other;
use crate::state::Web;

#[derive(Template)]
#[template(path = "team_settings.html")]
struct SettingsPage<'a> {
    layout: Layout,
    form_token: &'a str,
    team_name: &'a str,
    path: String,
    is_renamed: bool,
    has_proxies: bool,
    name: Field,
    errors: &'a [FieldError],
}

/// Shows the page.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    MyTeamPage { user, team }: MyTeamPage,
    QueryForm(query): QueryForm,
) -> Result<Response, Problem> {
    let shown = SettingsView { is_renamed: query.has("renamed"), ..SettingsView::default() };
    shown.render(&web, &user.session, &team, StatusCode::OK).await
}

/// Redirects to the page when the URL of a submitted form is loaded with GET.
pub(crate) async fn redirect_to_page(MyTeamPage { team, .. }: MyTeamPage) -> Response {
    see_other(&paths::settings(team.team))
}

/// The variable content of the page.
#[derive(Default)]
pub(super) struct SettingsView<'a> {
    pub(super) is_renamed: bool,
    /// The name that was refused.
    pub(super) name: Option<&'a str>,
    pub(super) errors: &'a [FieldError],
}

impl SettingsView<'_> {
    pub(super) async fn render(
        self,
        web: &Web,
        session: &Session,
        team: &UserTeam,
        status: StatusCode,
    ) -> Result<Response, Problem> {
        let Self { is_renamed, name, errors } = self;
        let template = SettingsPage {
            layout: web.team_admin_layout(session, team.team, "settings").await?,
            form_token: &session.csrf,
            team_name: &team.name,
            path: paths::team(team.team),
            is_renamed,
            has_proxies: web.core.has_proxies(),
            name: name_field("Team name", "", None, errors).with_value(name.unwrap_or(&team.name)),
            errors,
        };
        Ok(page(status, &template))
    }
}
