//! `/teams/{team}/leave`: leaves a team after a confirmation.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_engine::accounts;

use super::{PATH, path, people_path};
use crate::Web;
use crate::confirm::{Confirmation, confirm_page};
use crate::problem::Problem;
use crate::response::{ClientIp, see_other};
use crate::session::sign_in_url;
use crate::submitted_form::SubmittedForm;

/// Asks for confirmation.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    client: ClientIp,
    Path(team): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    web.limits.pages.take(client.0)?;
    let Some(person) = web.signed_in(request.headers()).await? else {
        return Ok(see_other(&sign_in_url(request.uri().path())));
    };
    let team = web.my_team(&person.session, &team).await?;
    let confirmation = Confirmation {
        title: "Leave team",
        subject: &team.name,
        consequences: &[
            "You and the apps you connected lose access to its captures, keys and credits immediately.",
            "To rejoin, you need a new invitation.",
        ],
        button: "Leave team",
        action: format!("{}/leave", path(team.team)),
        back: people_path(team.team),
        here: PATH,
    };
    Ok(confirm_page(&web, &person.session, &confirmation))
}

/// Leaves the team.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    client: ClientIp,
    Path(team): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let SubmittedForm { person, form: _ } = web.submitted_form(&web.limits.pages, client, request).await?;
    let team = web.my_team(&person.session, &team).await?;
    accounts::leave(&web.core, person.session.person.id, team.team).await?;
    Ok(see_other(&format!("{PATH}?left")))
}
