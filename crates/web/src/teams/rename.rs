//! `/teams/{team}/name`: renames a team.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use grabd_engine::accounts::{self, TeamError};
use http::StatusCode;

use super::users::{UsersView, redirect_with_notice};
use crate::extract::MyTeamForm;
use crate::form::FieldError;
use crate::problem::Problem;
use crate::state::Web;

/// Renames the team.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    MyTeamForm { user, team, form, .. }: MyTeamForm,
) -> Result<Response, Problem> {
    let name = form.get("name");
    match accounts::rename_team(&web.core, user.session.user.id, team.team, name).await {
        Ok(()) => Ok(redirect_with_notice(&team, "renamed")),
        Err(TeamError::TeamName(error)) => {
            let errors = [FieldError { field: "name", message: format!("Enter a name. It {error}.") }];
            let view = UsersView { name: Some(name), errors: &errors, ..UsersView::default() };
            view.render(&web, &user.session, team, StatusCode::UNPROCESSABLE_ENTITY).await
        }
        Err(error) => Err(error.into()),
    }
}
