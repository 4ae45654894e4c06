//! `/apps/{grant}/disconnect`: revokes a grant.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use grabd_domain::ids::GrantId;
use grabd_engine::oauth;

use super::PATH;
use crate::extract::SignedInForm;
use crate::problem::Problem;
use crate::response::see_other;
use crate::state::Web;

const UNKNOWN: &str = "This app does not exist or is already disconnected.";

/// Revokes the app's access immediately.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    Path(grant): Path<String>,
    SignedInForm { user, .. }: SignedInForm,
) -> Result<Response, Problem> {
    let Ok(grant) = grant.parse::<GrantId>() else { return Err(Problem::not_found(UNKNOWN)) };
    match oauth::disconnect(&web.core, user.session.user.id, grant).await? {
        true => Ok(see_other(&format!("{PATH}?disconnected"))),
        false => Err(Problem::not_found(UNKNOWN)),
    }
}
