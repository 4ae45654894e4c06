//! `/operator/teams/{team}/limits`: overrides a limit of the team, or removes the override.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use grabd_domain::team_limits::{LimitChange, LimitError};
use grabd_engine::operator::{self, ChangeLimitsOutcome};
use http::StatusCode;

use super::context::unknown;
use super::limit_table::{LIMIT_FIELD, VALUE_FIELD};
use super::team::render;
use crate::extract::OperatorForm;
use crate::form::{FieldError, Form};
use crate::problem::Problem;
use crate::response::see_other;
use crate::state::Web;

/// Changes a limit.
pub(super) async fn submit(
    State(web): State<Arc<Web>>,
    Path(team): Path<String>,
    OperatorForm { at, form: input }: OperatorForm,
) -> Result<Response, Problem> {
    let id = team.parse().map_err(|_| unknown())?;
    let show_error = async |error: FieldError| {
        render(&web, &at, &team, StatusCode::UNPROCESSABLE_ENTITY, &input, false, &[error]).await
    };
    let change = match parse(&input) {
        Ok(change) => change,
        Err(error) => return show_error(error).await,
    };
    match operator::change_limits(&web.core, &at.operator, id, vec![change]).await? {
        ChangeLimitsOutcome::Changed | ChangeLimitsOutcome::Unchanged => {
            Ok(see_other(&format!("/operator/teams/{id}#limits")))
        }
        ChangeLimitsOutcome::UnknownTeam => Err(unknown()),
        ChangeLimitsOutcome::TooMany => {
            let message = "All teams together have too many limits of their own. Reset some, or change the settings.";
            show_error(FieldError { field: "", message: message.to_owned() }).await
        }
    }
}

fn parse(input: &Form) -> Result<LimitChange, FieldError> {
    let (name, value) = (input.get(LIMIT_FIELD), input.get(VALUE_FIELD).trim());
    let wrong_name = |_: LimitError| FieldError { field: LIMIT_FIELD, message: "Choose a limit.".to_owned() };
    let reset = LimitChange::reset(name).map_err(wrong_name)?;
    if value.is_empty() {
        return Ok(reset);
    }
    let limit = reset.limit;
    LimitChange::set(limit, value).map_err(|_| FieldError {
        field: VALUE_FIELD,
        message: format!("The value of {limit} must be {}.", limit.allowed()),
    })
}
