//! `/teams/{team}/sites/{site}/delete`: deletes a job after a confirmation.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use grabd_engine::sites;

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
    Path((_, site)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let (site, _) = at.find_site_counted(&web, &site).await?;
    let confirmation = Confirmation {
        title: "Delete site job",
        subject: &site.spec.name,
        consequences: &[
            "Pages that were not captured yet are not captured any more.",
            "The list of its pages is deleted. Its captures stay. This cannot be undone.",
        ],
        button: "Delete",
        is_final: true,
        action: at.site_path(site.id, "delete"),
        back: at.site_path(site.id, ""),
    };
    Ok(confirm_page(web.site_layout(&at), &at.signed_in.session, &confirmation))
}

/// Deletes the job.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    Path((_, site)): Path<(String, String)>,
    TeamForm { at, .. }: TeamForm,
) -> Result<Response, Problem> {
    let (site, caller) = at.find_site_counted(&web, &site).await?;
    sites::remove(&web.core, caller, site.id).await?;
    Ok(see_other(&format!("{}?deleted", at.path(PAGE))))
}
