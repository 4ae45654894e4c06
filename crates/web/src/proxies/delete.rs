//! `/teams/{team}/proxies/{proxy}/delete`: deletes a proxy after a confirmation.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use grabd_engine::proxies;

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
    Path((_, proxy)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let (proxy, _) = at.find_proxy_counted(&web, &proxy).await?;
    let confirmation = Confirmation {
        title: "Delete proxy",
        subject: &proxy.name,
        consequences: &[
            "Captures and monitors that name it fail from then on, and are not charged.",
            "Its user name and password are deleted. This cannot be undone.",
        ],
        button: "Delete",
        is_final: true,
        action: at.proxy_path(proxy.id, "delete"),
        back: at.path(PAGE),
    };
    Ok(confirm_page(web.proxy_layout(&at), &at.signed_in.session, &confirmation))
}

/// Deletes the proxy.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    Path((_, proxy)): Path<(String, String)>,
    TeamForm { at, .. }: TeamForm,
) -> Result<Response, Problem> {
    let (proxy, caller) = at.find_proxy_counted(&web, &proxy).await?;
    proxies::remove(&web.core, caller, proxy.id).await?;
    Ok(see_other(&format!("{}?deleted", at.path(PAGE))))
}
