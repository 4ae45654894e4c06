//! `/account/sessions/end`: ends sessions.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use grabd_engine::accounts;

use super::PATH;
use crate::extract::SignedInForm;
use crate::problem::Problem;
use crate::response::see_other;
use crate::state::Web;

/// The value of the field `session` that means all sessions except the current one.
const OTHERS: &str = "others";

/// Ends one session, or all sessions except the current one.
pub(crate) async fn end(
    State(web): State<Arc<Web>>,
    SignedInForm { user, form, .. }: SignedInForm,
) -> Result<Response, Problem> {
    let me = user.session.user.id;
    let session = form.get("session");
    if session == OTHERS {
        accounts::end_other_sessions(&web.core, me, &user.token).await?;
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
