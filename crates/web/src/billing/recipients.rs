//! `/teams/{team}/billing/alert/recipients`: chooses who gets alerts about the balance of a team.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use grabd_domain::credits::ALERT_RECIPIENTS;
use grabd_domain::ids::UserId;
use grabd_engine::accounts::TeamError;
use grabd_engine::billing::{self, AlertError};
use http::StatusCode;

use super::HERE;
use super::show::{RECIPIENT_FIELD, Shown, render};
use crate::extract::TeamForm;
use crate::form::FieldError;
use crate::problem::Problem;
use crate::response::see_other;
use crate::state::Web;

/// Stores the chosen members, and shows the page again.
pub(crate) async fn submit(State(web): State<Arc<Web>>, TeamForm { at, form }: TeamForm) -> Result<Response, Problem> {
    let member = &at.team_member;
    // A malformed id is reported as one of somebody who cannot be chosen.
    let chosen: Option<Vec<UserId>> = form.all(RECIPIENT_FIELD).map(|id| id.parse().ok()).collect();
    let changed = match chosen {
        Some(chosen) => billing::set_alert_recipients(&web.core, member.user, member.team, chosen).await,
        None => Err(AlertError::Recipients),
    };
    match changed {
        Ok(()) => Ok(see_other(&format!("{}?saved", at.path(HERE)))),
        Err(AlertError::Recipients | AlertError::Number) => {
            let message = format!("Choose at most {ALERT_RECIPIENTS} members of the list.");
            let shown = Shown { errors: vec![FieldError { field: RECIPIENT_FIELD, message }], ..Shown::default() };
            render(&web, &at, StatusCode::UNPROCESSABLE_ENTITY, shown).await
        }
        Err(AlertError::NotAllowed) => Err(TeamError::NotAllowed.into()),
        Err(AlertError::Internal(error)) => Err(error.into()),
    }
}
