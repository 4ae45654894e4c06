//! `POST /teams`: creates a team.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use grabd_engine::accounts::{self, TeamError};
use http::StatusCode;

use super::list;
use crate::extract::SignedInForm;
use crate::fields::UNVERIFIED_MESSAGE;
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
    let (status, message) = match accounts::create_own_team(&web.core, user.session.user.id, form.get("name")).await {
        Ok(team) => return Ok(see_other(&format!("{}?founded", paths::users(team)))),
        Err(TeamError::TeamName(error)) => (StatusCode::UNPROCESSABLE_ENTITY, format!("Enter a name. It {error}.")),
        Err(TeamError::Unverified) => (StatusCode::FORBIDDEN, UNVERIFIED_MESSAGE.to_owned()),
        Err(error) => return Err(error.into()),
    };
    let errors = [FieldError { field: "name", message }];
    list::list(&web, &user.session, status, "", Some(&form), &errors).await
}
