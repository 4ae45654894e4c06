//! `/teams/{team}/webhooks/{webhook}/delete`: deletes a webhook after a confirmation.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use grabd_engine::webhooks;

use super::PAGE;
use super::view::WebhookView;
use crate::confirm::{Confirmation, confirm_page};
use crate::extract::{TeamForm, TeamPage};
use crate::problem::Problem;
use crate::response::see_other;
use crate::state::Web;

/// Asks for confirmation.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    TeamPage(at): TeamPage,
    Path((_, webhook)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let (webhook, _) = at.find_webhook_counted(&web, &webhook).await?;
    let hook = WebhookView::of(&webhook, &at);
    let confirmation = Confirmation {
        title: "Delete webhook",
        subject: &hook.title,
        consequences: &[
            "No more messages are sent to it. Pending retries are cancelled.",
            "Its secret and delivery log are deleted. This cannot be undone.",
        ],
        button: "Delete",
        is_final: true,
        action: at.webhook_path(webhook.id, "delete"),
        back: hook.path,
    };
    Ok(confirm_page(web.webhook_layout(&at), &at.signed_in.session, &confirmation))
}

/// Deletes the webhook.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    Path((_, webhook)): Path<(String, String)>,
    TeamForm { at, .. }: TeamForm,
) -> Result<Response, Problem> {
    let (webhook, caller) = at.find_webhook_counted(&web, &webhook).await?;
    webhooks::remove(&web.core, caller, webhook.id).await?;
    Ok(see_other(&format!("{}?deleted", at.path(PAGE))))
}
