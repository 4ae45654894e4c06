//! `/teams/{team}/billing/alert`: changes when the owners of a team get an alert about its balance.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use grabd_domain::credits::ALERT_BELOW_MAX;
use grabd_engine::accounts::TeamError;
use grabd_engine::billing::{self, AlertError};
use http::StatusCode;

use super::HERE;
use super::alert_field::{FIELD, MAX_CHARS};
use super::show::{Shown, render};
use crate::extract::TeamForm;
use crate::form::FieldError;
use crate::number::grouped;
use crate::problem::Problem;
use crate::response::see_other;
use crate::state::Web;

/// Changes the number, and shows the page again.
pub(crate) async fn submit(State(web): State<Arc<Web>>, TeamForm { at, form }: TeamForm) -> Result<Response, Problem> {
    let (below, member) = (form.get(FIELD), &at.team_member);
    match billing::set_balance_alert(&web.core, member.user, member.team, below).await {
        Ok(()) => Ok(see_other(&format!("{}?saved", at.path(HERE)))),
        Err(AlertError::Number) => {
            let entered: String = below.chars().take(MAX_CHARS as usize).collect();
            let message =
                format!("Enter a whole number from 0 to {}, not “{entered}”.", grouped(ALERT_BELOW_MAX.into()));
            let shown =
                Shown { below: Some(entered), errors: vec![FieldError { field: FIELD, message }], ..Shown::default() };
            render(&web, &at, StatusCode::UNPROCESSABLE_ENTITY, shown).await
        }
        Err(AlertError::NotAllowed | AlertError::Recipients) => Err(TeamError::NotAllowed.into()),
        Err(AlertError::Internal(error)) => Err(error.into()),
    }
}
