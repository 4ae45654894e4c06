//! `/teams/{team}/monitors/new`: creates a monitor, also with the options of an existing capture.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use grabd_domain::credentials::Environment;
use grabd_engine::{Error, monitors};
use http::StatusCode;

use super::PAGE;
use super::fields::{self, DEFAULTS};
use super::form_page::{Purpose, form_page};
use crate::environments::{ENVIRONMENT, chosen_environment};
use crate::extract::{QueryForm, TeamForm, TeamPage};
use crate::form::{FieldError, Form};
use crate::grabs::options::omitted_labels;
use crate::problem::Problem;
use crate::response::see_other;
use crate::state::Web;
use crate::team::TeamContext;

/// Shows the form, prefilled with the options in the query.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    TeamPage(at): TeamPage,
    QueryForm(query): QueryForm,
) -> Result<Response, Problem> {
    let given = query.fields().iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let defaults = DEFAULTS.into_iter().filter(|(name, _)| !query.has(name));
    Ok(form(&web, &at, StatusCode::OK, &defaults.chain(given).collect(), &[]))
}

/// Creates the monitor and redirects to its page.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    TeamForm { at, form: input }: TeamForm,
) -> Result<Response, Problem> {
    let error = match (chosen_environment(&input), fields::comparison_error(&input)) {
        (None, _) => FieldError { field: ENVIRONMENT, message: "Choose an environment.".to_owned() },
        (Some(_), Some(error)) => error,
        (Some(environment), None) => {
            let caller = at.team_member.admit(&web.core, environment).await?;
            match monitors::create(&web.core, caller, &fields::request(&input)).await.map_err(Error::into_fault) {
                Ok(monitor) => return Ok(see_other(&format!("{}?created", at.monitor_path(monitor.id, "")))),
                Err(fault) => fields::field_error(fault)?,
            }
        }
    };
    Ok(form(&web, &at, StatusCode::UNPROCESSABLE_ENTITY, &input, &[error]))
}

fn form(web: &Web, at: &TeamContext, status: StatusCode, input: &Form, errors: &[FieldError]) -> Response {
    let purpose = Purpose {
        title: "New monitor",
        button: "Create monitor",
        action: at.path("monitors/new"),
        back: at.path(PAGE),
        environment: Some(chosen_environment(input).unwrap_or(Environment::Live)),
        has_options: true,
        omitted: omitted_labels(input).join(", "),
    };
    form_page(web, at, status, purpose, input, errors)
}
