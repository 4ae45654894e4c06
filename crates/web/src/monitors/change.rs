//! `/teams/{team}/monitors/{monitor}/change`: changes what a monitor captures, when, and what it reports.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use grabd_domain::monitor::{Monitor, MonitorRequest};
use grabd_engine::{Error, monitors};
use http::StatusCode;

use super::fields;
use super::form_page::{Purpose, form_page};
use crate::extract::{TeamForm, TeamPage};
use crate::form::{FieldError, Form};
use crate::problem::Problem;
use crate::response::see_other;
use crate::state::Web;
use crate::team::TeamContext;

/// Shows the form with the current values.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    TeamPage(at): TeamPage,
    Path((_, monitor)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let (monitor, _) = at.find_monitor_counted(&web, &monitor).await?;
    Ok(form(&web, &at, &monitor, StatusCode::OK, &fields::form_of(&monitor), &[]))
}

/// Saves the changes.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    Path((_, monitor)): Path<(String, String)>,
    TeamForm { at, form: input }: TeamForm,
) -> Result<Response, Problem> {
    let (monitor, caller) = at.find_monitor_counted(&web, &monitor).await?;
    let error = match fields::comparison_error(&input) {
        Some(error) => error,
        None => {
            let request = fields::request(&input);
            let capture = request.capture.filter(|_| has_editable_options(&monitor));
            let request = MonitorRequest { capture, ..request };
            match monitors::change(&web.core, caller, monitor.id, &request).await.map_err(Error::into_fault) {
                Ok(_) => return Ok(see_other(&format!("{}?changed", at.monitor_path(monitor.id, "")))),
                Err(fault) => fields::field_error(fault)?,
            }
        }
    };
    Ok(form(&web, &at, &monitor, StatusCode::UNPROCESSABLE_ENTITY, &input, &[error]))
}

/// Whether a form can have all options of the capture: secret ones, which include documents, are not shown again.
fn has_editable_options(monitor: &Monitor) -> bool {
    monitor.spec.capture.secrets.given().is_empty()
}

fn form(
    web: &Web,
    at: &TeamContext,
    monitor: &Monitor,
    status: StatusCode,
    input: &Form,
    errors: &[FieldError],
) -> Response {
    let purpose = Purpose {
        title: "Edit monitor",
        button: "Save changes",
        action: at.monitor_path(monitor.id, "change"),
        back: at.monitor_path(monitor.id, ""),
        environment: None,
        has_options: has_editable_options(monitor),
        omitted: String::new(),
        is_several: false,
        other: None,
    };
    form_page(web, at, status, purpose, input, errors)
}
