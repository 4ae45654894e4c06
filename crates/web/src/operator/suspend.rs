//! `/operator/teams/{team}/suspend` and `/operator/teams/{team}/restore`.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use grabd_engine::accounts::{SUSPENSION_REASON_CHARS, suspension_reason};
use grabd_engine::operator;
use http::StatusCode;

use super::context::unknown;
use super::team::{SUSPEND_REASON_FIELD, render};
use crate::extract::OperatorForm;
use crate::form::FieldError;
use crate::problem::Problem;
use crate::response::see_other;
use crate::state::Web;

/// Suspends the team.
pub(super) async fn suspend(
    State(web): State<Arc<Web>>,
    Path(team): Path<String>,
    OperatorForm { at, form: input }: OperatorForm,
) -> Result<Response, Problem> {
    let id = team.parse().map_err(|_| unknown())?;
    let Some(reason) = suspension_reason(input.get(SUSPEND_REASON_FIELD)) else {
        let (min, max) = (SUSPENSION_REASON_CHARS.start(), SUSPENSION_REASON_CHARS.end());
        let message = format!("Write a reason of {min} to {max} characters.");
        let errors = [FieldError { field: SUSPEND_REASON_FIELD, message }];
        return render(&web, &at, &team, StatusCode::UNPROCESSABLE_ENTITY, &input, false, &errors).await;
    };
    operator::suspend(&web.core, &at.operator, id, reason).await?.ok_or_else(unknown)?;
    Ok(see_other(&format!("/operator/teams/{id}")))
}

/// Restores the team.
pub(super) async fn restore(
    State(web): State<Arc<Web>>,
    Path(team): Path<String>,
    OperatorForm { at, .. }: OperatorForm,
) -> Result<Response, Problem> {
    let id = team.parse().map_err(|_| unknown())?;
    match operator::restore(&web.core, &at.operator, id).await? {
        true => Ok(see_other(&format!("/operator/teams/{id}"))),
        false => Err(unknown()),
    }
}
