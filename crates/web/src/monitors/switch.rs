//! `/teams/{team}/monitors/{monitor}/pause` and `…/resume`: stops and continues the schedule of a monitor.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use grabd_domain::monitor::MonitorRequest;
use grabd_engine::monitors;

use crate::extract::TeamForm;
use crate::problem::Problem;
use crate::response::see_other;
use crate::state::Web;
use crate::team::TeamContext;

/// Pauses the monitor.
pub(crate) async fn pause(
    State(web): State<Arc<Web>>,
    Path((_, monitor)): Path<(String, String)>,
    TeamForm { at, .. }: TeamForm,
) -> Result<Response, Problem> {
    switch(&web, &at, &monitor, (true, "paused")).await
}

/// Resumes the monitor.
pub(crate) async fn resume(
    State(web): State<Arc<Web>>,
    Path((_, monitor)): Path<(String, String)>,
    TeamForm { at, .. }: TeamForm,
) -> Result<Response, Problem> {
    switch(&web, &at, &monitor, (false, "resumed")).await
}

async fn switch(
    web: &Web,
    at: &TeamContext,
    monitor: &str,
    (paused, notice): (bool, &str),
) -> Result<Response, Problem> {
    let (monitor, caller) = at.find_monitor_counted(web, monitor).await?;
    let request = MonitorRequest { paused: Some(paused), ..MonitorRequest::default() };
    monitors::change(&web.core, caller, monitor.id, &request).await?;
    Ok(see_other(&format!("{}?{notice}", at.monitor_path(monitor.id, ""))))
}
