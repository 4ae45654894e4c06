//! `/operator/teams/{team}/limits`: overrides a limit of the team, or removes the override.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use grabd_domain::team_limits::{LimitChange, LimitError, TeamLimit};
use grabd_engine::operator::{self, ChangeLimitsOutcome, LimitRow};
use http::StatusCode;

use super::context::unknown;
use super::team::render;
use crate::extract::OperatorForm;
use crate::form::{Field, FieldError, Form};
use crate::number::grouped;
use crate::problem::Problem;
use crate::response::see_other;
use crate::state::Web;

/// The field with the name of the limit.
const LIMIT_FIELD: &str = "limit";
/// The field with its value; empty to remove the override.
const VALUE_FIELD: &str = "limit_value";

/// The table of limits, and the form that changes one.
pub(super) struct Limits {
    pub(super) rows: Vec<Row>,
    /// Names, and whether each is selected.
    pub(super) choices: Vec<(&'static str, bool)>,
    pub(super) limit_error: Option<String>,
    pub(super) value: Field,
}

/// A limit in the table.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) value: String,
    pub(super) setting: String,
    pub(super) is_overridden: bool,
}

impl Limits {
    pub(super) fn new(rows: Vec<LimitRow>, input: &Form, errors: &[FieldError]) -> Self {
        let row = |row: LimitRow| Row {
            name: row.limit.as_str(),
            about: row.limit.about(),
            value: grouped(row.value),
            setting: grouped(row.setting),
            is_overridden: row.is_overridden,
        };
        let value = Field {
            name: VALUE_FIELD,
            label: "New value",
            kind: "text",
            autocomplete: "off",
            max_length: 10,
            hint: "A whole number. Leave it empty to apply the setting again.",
            value: input.get(VALUE_FIELD).to_owned(),
            error: None,
        };
        let selected = input.get(LIMIT_FIELD);
        Self {
            rows: rows.into_iter().map(row).collect(),
            choices: TeamLimit::ALL.into_iter().map(|limit| (limit.as_str(), limit.as_str() == selected)).collect(),
            limit_error: errors.iter().find(|error| error.field == LIMIT_FIELD).map(|error| error.message.clone()),
            value: value.with_errors(errors),
        }
    }
}

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
