//! `/teams/{team}/monitors/{monitor}/accept`: makes a capture the one that later captures are compared with.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use grabd_domain::Fault;
use grabd_engine::{Error, monitors};

use crate::extract::TeamForm;
use crate::problem::Problem;
use crate::response::see_other;
use crate::state::Web;

/// The field with the id of the capture.
const GRAB: &str = "grab";

/// Accepts the capture.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    Path((_, monitor)): Path<(String, String)>,
    TeamForm { at, form }: TeamForm,
) -> Result<Response, Problem> {
    let (monitor, caller) = at.find_monitor_counted(&web, &monitor).await?;
    match monitors::accept(&web.core, caller, monitor.id, Some(form.get(GRAB))).await.map_err(Error::into_fault) {
        Ok(_) => Ok(see_other(&format!("{}?accepted", at.monitor_path(monitor.id, "")))),
        Err(Fault::BadRequest(_)) => Err(Problem::conflict(
            "This capture cannot be accepted",
            "It is not a capture of this monitor, its run is no longer listed, or its image was deleted.",
            "Choose another capture on the page of the monitor.",
        )),
        Err(fault) => Err(fault.into()),
    }
}
