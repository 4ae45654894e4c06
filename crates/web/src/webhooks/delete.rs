//! `/teams/{team}/webhooks/{webhook}/delete`: deletes a webhook after a confirmation.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_engine::webhooks;

use super::PAGE;
use super::view::WebhookView;
use crate::Web;
use crate::confirm::{Confirmation, confirm_page};
use crate::problem::Problem;
use crate::response::{ClientIp, see_other};
use crate::session::sign_in_url_for;
use crate::teams;

/// Asks for confirmation.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    client: ClientIp,
    Path((team, webhook)): Path<(String, String)>,
    request: Request,
) -> Result<Response, Problem> {
    web.limits.pages.take(client.0)?;
    let Some(at) = web.team_context(request.headers(), &team).await? else {
        return Ok(see_other(&sign_in_url_for(request.uri())));
    };
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
        action: at.webhook_path(webhook.id, "delete"),
        back: hook.path,
        here: teams::PATH,
    };
    Ok(confirm_page(&web, &at.signed_in.session, &confirmation))
}

/// Deletes the webhook.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    client: ClientIp,
    Path((team, webhook)): Path<(String, String)>,
    request: Request,
) -> Result<Response, Problem> {
    let (at, _) = web.submitted_form_in_team(client, &team, request).await?;
    let (webhook, caller) = at.find_webhook_counted(&web, &webhook).await?;
    webhooks::remove(&web.core, caller, webhook.id).await?;
    Ok(see_other(&format!("{}?deleted", at.path(PAGE))))
}
