//! `/account/sessions/end`

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use grabd_engine::accounts;

use super::PATH;
use crate::Web;
use crate::frame::{Client, see_other};
use crate::problem::Problem;
use crate::sent::Sent;

/// What the field `session` says when all but the one in use are meant.
const OTHERS: &str = "others";

/// Ends one session, or all others.
pub(crate) async fn end(State(web): State<Arc<Web>>, client: Client, request: Request) -> Result<Response, Problem> {
    let Sent { person, form } = web.sent(&web.limits.pages, client, request).await?;
    let me = person.session.person.id;
    let session = form.one("session");
    if session == OTHERS {
        accounts::end_other_sessions(&web.core, me, &person.token).await?;
        return Ok(see_other(&format!("{PATH}?alone")));
    }
    let ended = match session.parse() {
        Ok(session) => accounts::end_session(&web.core, me, session).await?,
        Err(_) => false,
    };
    match ended {
        true => Ok(see_other(&format!("{PATH}?ended"))),
        false => Err(Problem::not_found("You have no such session, or it is over already.")),
    }
}
