//! `/account/sessions/end`: ends sessions.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use grabd_engine::accounts;

use super::PATH;
use crate::Web;
use crate::problem::Problem;
use crate::response::{ClientIp, see_other};
use crate::submitted_form::SubmittedForm;

/// The value of the field `session` that means all sessions except the current one.
const OTHERS: &str = "others";

/// Ends one session, or all sessions except the current one.
pub(crate) async fn end(State(web): State<Arc<Web>>, client: ClientIp, request: Request) -> Result<Response, Problem> {
    let SubmittedForm { person, form } = web.submitted_form(&web.limits.pages, client, request).await?;
    let me = person.session.person.id;
    let session = form.get("session");
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
        false => Err(Problem::not_found("This session does not exist or has already ended.")),
    }
}
