//! `/teams`, as a form: a new team.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use grabd_engine::accounts::{self, TeamError};
use http::StatusCode;

use super::{list, people_path};
use crate::Web;
use crate::form::Complaint;
use crate::frame::{Client, see_other};
use crate::problem::Problem;
use crate::sent::Sent;

/// Creates it, and leads to it.
pub(crate) async fn submit(State(web): State<Arc<Web>>, client: Client, request: Request) -> Result<Response, Problem> {
    let Sent { person, form } = web.sent(&web.limits.pages, client, request).await?;
    match accounts::found_team(&web.core, person.session.person.id, form.one("name")).await {
        Ok(team) => Ok(see_other(&format!("{}?founded", people_path(team)))),
        Err(TeamError::Name(error)) => {
            let bad = [Complaint { field: "name", message: format!("Write a name. It {error}.") }];
            list::list(&web, &person.session, StatusCode::UNPROCESSABLE_ENTITY, false, Some(&form), &bad).await
        }
        Err(error) => Err(error.into()),
    }
}
