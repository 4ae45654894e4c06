//! `/teams/{team}/name`: renames a team.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use grabd_engine::accounts::{self, TeamError};
use http::StatusCode;

use super::people::{PeopleView, redirect_with_notice};
use crate::extract::MyTeamForm;
use crate::form::FieldError;
use crate::problem::Problem;
use crate::state::Web;

/// Renames the team.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    MyTeamForm { person, team, form, .. }: MyTeamForm,
) -> Result<Response, Problem> {
    let name = form.get("name");
    match accounts::rename_team(&web.core, person.session.person.id, team.team, name).await {
        Ok(()) => Ok(redirect_with_notice(&team, "renamed")),
        Err(TeamError::TeamName(error)) => {
            let errors = [FieldError { field: "name", message: format!("Enter a name. It {error}.") }];
            let view = PeopleView { name: Some(name), errors: &errors, ..PeopleView::default() };
            view.render(&web, &person.session, team, StatusCode::UNPROCESSABLE_ENTITY).await
        }
        Err(error) => Err(error.into()),
    }
}
