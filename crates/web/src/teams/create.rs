//! `POST /teams`: creates a team.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use grabd_engine::accounts::{self, TeamError};
use http::StatusCode;

use super::{list, people_path};
use crate::Web;
use crate::form::FieldError;
use crate::problem::Problem;
use crate::response::{ClientIp, see_other};
use crate::submitted_form::SubmittedForm;

/// Creates the team and redirects to its page.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    client: ClientIp,
    request: Request,
) -> Result<Response, Problem> {
    let SubmittedForm { person, form } = web.submitted_form(&web.limits.pages, client, request).await?;
    match accounts::create_own_team(&web.core, person.session.person.id, form.get("name")).await {
        Ok(team) => Ok(see_other(&format!("{}?founded", people_path(team)))),
        Err(TeamError::TeamName(error)) => {
            let errors = [FieldError { field: "name", message: format!("Enter a name. It {error}.") }];
            list::list(&web, &person.session, StatusCode::UNPROCESSABLE_ENTITY, "", Some(&form), &errors).await
        }
        Err(error) => Err(error.into()),
    }
}
