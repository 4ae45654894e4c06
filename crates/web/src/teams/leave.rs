//! `/teams/{team}/leave`

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_engine::accounts;

use super::{PATH, path, people_path};
use crate::Web;
use crate::confirm::{Question, ask};
use crate::frame::{Client, see_other};
use crate::problem::Problem;
use crate::sent::Sent;
use crate::session::sign_in_first;

/// Asks whether to.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    client: Client,
    Path(team): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    web.limits.pages.take(client.0)?;
    let Some(person) = web.signed_in(request.headers()).await? else {
        return Ok(see_other(&sign_in_first(request.uri().path())));
    };
    let team = web.my_team(&person.session, &team).await?;
    let question = Question {
        deed: "Leave the team",
        what: &team.name,
        consequences: &[
            "You see its captures, keys and credits no more, and apps you connected can do nothing for it, at once.",
            "To come back you have to be invited again.",
        ],
        button: "Leave the team",
        action: format!("{}/leave", path(team.team)),
        back: people_path(team.team),
        here: PATH,
    };
    Ok(ask(&web, &person.session, &question))
}

/// Leaves it.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    client: Client,
    Path(team): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let Sent { person, form: _ } = web.sent(&web.limits.pages, client, request).await?;
    let team = web.my_team(&person.session, &team).await?;
    accounts::leave(&web.core, person.session.person.id, team.team).await?;
    Ok(see_other(&format!("{PATH}?left")))
}
