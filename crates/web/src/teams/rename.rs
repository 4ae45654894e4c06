//! `/teams/{team}/name`: renames a team.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use grabd_engine::accounts::{self, TeamError};
use http::StatusCode;

use super::settings::SettingsView;
use crate::extract::MyTeamForm;
use crate::form::FieldError;
use crate::paths;
use crate::problem::Problem;
use crate::response::see_other;
use crate::state::Web;

/// Renames the team.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    MyTeamForm { user, team, form, .. }: MyTeamForm,
) -> Result<Response, Problem> {
    let name = form.get("name");
    match accounts::rename_team(&web.core, user.session.user.id, team.team, name).await {
        Ok(()) => Ok(see_other(&format!("{}?renamed", paths::settings(team.team)))),
        Err(TeamError::TeamName(error)) => {
            let errors = [FieldError { field: "name", message: format!("Enter a name. It {error}.") }];
            let view = SettingsView { name: Some(name), errors: &errors, ..SettingsView::default() };
            view.render(&web, &user.session, &team, StatusCode::UNPROCESSABLE_ENTITY).await
        }
        Err(error) => Err(error.into()),
    }
}
