//! `/teams/{team}/name`

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_engine::accounts::{self, TeamError};
use http::StatusCode;

use super::people::{Shown, back};
use crate::Web;
use crate::form::Complaint;
use crate::frame::Client;
use crate::problem::Problem;
use crate::sent::Sent;

/// Gives it.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    client: Client,
    Path(team): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let Sent { person, form } = web.sent(&web.limits.pages, client, request).await?;
    let team = web.my_team(&person.session, &team).await?;
    let name = form.one("name");
    match accounts::rename_team(&web.core, person.session.person.id, team.team, name).await {
        Ok(()) => Ok(back(&team, "renamed")),
        Err(TeamError::Name(error)) => {
            let errors = [Complaint { field: "name", message: format!("Write a name. It {error}.") }];
            let shown = Shown { name: Some(name), errors: &errors, ..Shown::default() };
            shown.page(&web, &person.session, team, StatusCode::UNPROCESSABLE_ENTITY).await
        }
        Err(error) => Err(error.into()),
    }
}
