//! `/operator/teams/{team}/suspend` and `/operator/teams/{team}/restore`.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_engine::accounts::{SUSPENSION_REASON_CHARS, suspension_reason};
use grabd_engine::operator;
use http::StatusCode;

use super::team::{SUSPEND_REASON_FIELD, render};
use super::{OperatorContext, unknown};
use crate::Web;
use crate::csrf;
use crate::form::{FieldError, Form};
use crate::problem::Problem;
use crate::response::see_other;

/// Suspends the team.
pub(super) async fn suspend(
    State(web): State<Arc<Web>>,
    at: OperatorContext,
    Path(team): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let (head, body) = request.into_parts();
    let input = Form::read(&head.headers, body).await?;
    csrf::check(&head.headers, &input, &at.session.csrf)?;
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
    at: OperatorContext,
    Path(team): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let (head, body) = request.into_parts();
    let input = Form::read(&head.headers, body).await?;
    csrf::check(&head.headers, &input, &at.session.csrf)?;
    let id = team.parse().map_err(|_| unknown())?;
    match operator::restore(&web.core, &at.operator, id).await? {
        true => Ok(see_other(&format!("/operator/teams/{id}"))),
        false => Err(unknown()),
    }
}
