//! `/teams/{team}/monitors/{monitor}/delete`: deletes a monitor after a confirmation.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use grabd_engine::monitors;

use super::PAGE;
use crate::confirm::{Confirmation, confirm_page};
use crate::extract::{TeamForm, TeamPage};
use crate::problem::Problem;
use crate::response::see_other;
use crate::state::Web;

/// Asks for confirmation.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    TeamPage(at): TeamPage,
    Path((_, monitor)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let (monitor, _) = at.find_monitor_counted(&web, &monitor).await?;
    let confirmation = Confirmation {
        title: "Delete monitor",
        subject: &monitor.spec.name,
        consequences: &[
            "The page is not captured by this schedule any more, and no changes are reported.",
            "The list of its runs is deleted. Its captures stay. This cannot be undone.",
        ],
        button: "Delete",
        is_final: true,
        action: at.monitor_path(monitor.id, "delete"),
        back: at.monitor_path(monitor.id, ""),
    };
    Ok(confirm_page(web.monitor_layout(&at), &at.signed_in.session, &confirmation))
}

/// Deletes the monitor.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    Path((_, monitor)): Path<(String, String)>,
    TeamForm { at, .. }: TeamForm,
) -> Result<Response, Problem> {
    let (monitor, caller) = at.find_monitor_counted(&web, &monitor).await?;
    monitors::remove(&web.core, caller, monitor.id).await?;
    Ok(see_other(&format!("{}?deleted", at.path(PAGE))))
}
