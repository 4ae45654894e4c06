//! `/operator/teams/{team}/credits`: grants credits, at most once per form.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use grabd_engine::operator::{self, NewGrant, OperatorGrantOutcome};
use http::StatusCode;

use super::context::unknown;
use super::team::{CREDITS_FIELD, IDEMPOTENCY_FIELD, REASON_FIELD, field_error, render};
use crate::extract::{OperatorContext, OperatorForm};
use crate::form::FieldError;
use crate::problem::Problem;
use crate::response::see_other;
use crate::state::Web;

/// Redirects to the team's page, which has the form, when the URL of a submitted form is loaded with GET.
pub(super) async fn show(_: OperatorContext, Path(team): Path<String>) -> Response {
    see_other(&format!("/operator/teams/{team}"))
}

/// Grants the credits.
pub(super) async fn submit(
    State(web): State<Arc<Web>>,
    Path(team): Path<String>,
    OperatorForm { at, form: input }: OperatorForm,
) -> Result<Response, Problem> {
    let id = team.parse().map_err(|_| unknown())?;
    let show_errors = async |errors: &[FieldError]| {
        render(&web, &at, &team, StatusCode::UNPROCESSABLE_ENTITY, &input, false, errors).await
    };
    let new = match NewGrant::parse(input.get(CREDITS_FIELD), input.get(REASON_FIELD), input.get(IDEMPOTENCY_FIELD)) {
        Ok(new) => new,
        Err(mistakes) => return show_errors(&mistakes.into_iter().map(field_error).collect::<Vec<_>>()).await,
    };
    match operator::grant(&web.core, &at.operator, id, &new).await?.ok_or_else(unknown)? {
        OperatorGrantOutcome::New(_) | OperatorGrantOutcome::Repeated(_) => {
            Ok(see_other(&format!("/operator/teams/{id}?granted")))
        }
        OperatorGrantOutcome::Conflict => {
            let message = "This form was already submitted with different values. Check the team's credits before you submit it again.";
            show_errors(&[FieldError { field: "", message: message.to_owned() }]).await
        }
    }
}
