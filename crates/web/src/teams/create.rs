//! `POST /teams`: creates a team.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use grabd_engine::accounts::{self, TeamError};
use http::StatusCode;

use super::list;
use crate::extract::SignedInForm;
use crate::form::FieldError;
use crate::paths;
use crate::problem::Problem;
use crate::response::see_other;
use crate::state::Web;

/// Creates the team and redirects to its page.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    SignedInForm { user, form, .. }: SignedInForm,
) -> Result<Response, Problem> {
    match accounts::create_own_team(&web.core, user.session.user.id, form.get("name")).await {
        Ok(team) => Ok(see_other(&format!("{}?founded", paths::users(team)))),
        Err(TeamError::TeamName(error)) => {
            let errors = [FieldError { field: "name", message: format!("Enter a name. It {error}.") }];
            list::list(&web, &user.session, StatusCode::UNPROCESSABLE_ENTITY, "", Some(&form), &errors).await
        }
        Err(error) => Err(error.into()),
    }
}
