//! `/teams/{team}/webhooks/{webhook}/off` and `…/on`: disables and enables a webhook.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use grabd_domain::webhooks;
use grabd_engine::webhooks::change;

use super::view::WebhookView;
use crate::confirm::{Confirmation, confirm_page};
use crate::extract::{TeamForm, TeamPage};
use crate::problem::Problem;
use crate::response::see_other;
use crate::state::Web;
use crate::team::TeamContext;

/// Asks for confirmation to disable the webhook.
pub(crate) async fn confirm_off(
    State(web): State<Arc<Web>>,
    TeamPage(at): TeamPage,
    Path((_, webhook)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let (webhook, _) = at.find_webhook_counted(&web, &webhook).await?;
    let hook = WebhookView::of(&webhook, &at);
    let confirmation = Confirmation {
        title: "Disable",
        subject: &hook.title,
        consequences: &[
            "No messages are sent until you enable it again. Events in the meantime are not delivered later.",
            "Pending retries are cancelled.",
        ],
        button: "Disable webhook",
        is_final: false,
        action: at.webhook_path(webhook.id, "off"),
        back: hook.path,
    };
    Ok(confirm_page(web.webhook_layout(&at), &at.signed_in.session, &confirmation))
}

/// Disables the webhook.
pub(crate) async fn off(
    State(web): State<Arc<Web>>,
    Path((_, webhook)): Path<(String, String)>,
    TeamForm { at, .. }: TeamForm,
) -> Result<Response, Problem> {
    switch(&web, &at, &webhook, ("disabled", "off")).await
}

/// Enables the webhook.
pub(crate) async fn on(
    State(web): State<Arc<Web>>,
    Path((_, webhook)): Path<(String, String)>,
    TeamForm { at, .. }: TeamForm,
) -> Result<Response, Problem> {
    switch(&web, &at, &webhook, ("enabled", "on")).await
}

async fn switch(
    web: &Web,
    at: &TeamContext,
    webhook: &str,
    (status, notice): (&str, &str),
) -> Result<Response, Problem> {
    let (webhook, caller) = at.find_webhook_counted(web, webhook).await?;
    let change_request =
        webhooks::EndpointRequest { status: Some(status.to_owned()), ..webhooks::EndpointRequest::default() };
    let webhook = change(&web.core, caller, webhook.id, &change_request).await?;
    Ok(see_other(&format!("{}?{notice}", at.webhook_path(webhook.id, ""))))
}
