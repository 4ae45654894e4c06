//! `/operator/teams/{team}/suspend`, which asks first, and `/operator/teams/{team}/restore`.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use grabd_engine::accounts::{SUSPENSION_REASON_CHARS, suspension_reason};
use grabd_engine::operator;
use http::StatusCode;

use super::context::unknown;
use super::navigation::TEAMS;
use crate::confirm::{Confirmation, confirm_page_with_field};
use crate::extract::{OperatorContext, OperatorForm};
use crate::form::{Field, FieldError};
use crate::problem::Problem;
use crate::response::see_other;
use crate::state::Web;

/// The field with the reason.
const REASON: &str = "suspend_reason";

/// Asks for the reason. A suspended team has nothing to confirm.
pub(super) async fn confirm(
    State(web): State<Arc<Web>>,
    at: OperatorContext,
    Path(team): Path<String>,
) -> Result<Response, Problem> {
    ask(&web, &at, &team, StatusCode::OK, "", &[]).await
}

/// Suspends the team.
pub(super) async fn suspend(
    State(web): State<Arc<Web>>,
    Path(team): Path<String>,
    OperatorForm { at, form: input }: OperatorForm,
) -> Result<Response, Problem> {
    let id = team.parse().map_err(|_| unknown())?;
    let Some(reason) = suspension_reason(input.get(REASON)) else {
        let (min, max) = (SUSPENSION_REASON_CHARS.start(), SUSPENSION_REASON_CHARS.end());
        let message = format!("Write a reason of {min} to {max} characters.");
        let errors = [FieldError { field: REASON, message }];
        return ask(&web, &at, &team, StatusCode::UNPROCESSABLE_ENTITY, input.get(REASON), &errors).await;
    };
    operator::suspend(&web.core, &at.operator, id, reason).await?.ok_or_else(unknown)?;
    Ok(see_other(&format!("{TEAMS}/{id}")))
}

/// Restores the team.
pub(super) async fn restore(
    State(web): State<Arc<Web>>,
    Path(team): Path<String>,
    OperatorForm { at, .. }: OperatorForm,
) -> Result<Response, Problem> {
    let id = team.parse().map_err(|_| unknown())?;
    match operator::restore(&web.core, &at.operator, id).await? {
        true => Ok(see_other(&format!("{TEAMS}/{id}"))),
        false => Err(unknown()),
    }
}

async fn ask(
    web: &Web,
    at: &OperatorContext,
    team: &str,
    status: StatusCode,
    reason: &str,
    errors: &[FieldError],
) -> Result<Response, Problem> {
    let id = team.parse().map_err(|_| unknown())?;
    let found = operator::find_team(&web.core, &at.operator, id).await?.ok_or_else(unknown)?;
    let path = format!("{TEAMS}/{id}");
    if found.team.suspension.is_some() {
        return Ok(see_other(&path));
    }
    let confirmation = Confirmation {
        title: "Suspend team",
        subject: &found.team.name,
        consequences: &[
            "Its keys, apps and pages stop working immediately.",
            "Captures in progress end and are not charged. Its images stay.",
            "You can restore the team at any time.",
        ],
        button: "Suspend team",
        is_final: true,
        action: format!("{path}/suspend"),
        back: path,
    };
    let field = reason_field().with_value(reason).with_errors(errors);
    Ok(confirm_page_with_field(at.layout(web, TEAMS), &at.session, &confirmation, status, field, errors))
}

fn reason_field() -> Field {
    Field {
        name: REASON,
        label: "Reason for the suspension",
        kind: "text",
        autocomplete: "off",
        max_length: 200,
        hint: "Shown to operators only.",
        value: String::new(),
        error: None,
    }
}
