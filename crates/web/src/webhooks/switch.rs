//! `/teams/{team}/webhooks/{webhook}/off` and `…/on`: disables and enables a webhook.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_domain::webhooks;
use grabd_engine::webhooks::change;

use super::view::WebhookView;
use crate::Web;
use crate::confirm::{Confirmation, confirm_page};
use crate::problem::Problem;
use crate::response::{ClientIp, see_other};
use crate::session::sign_in_url_for;
use crate::teams;

/// Asks for confirmation to disable the webhook.
pub(crate) async fn confirm_off(
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
        title: "Disable",
        subject: &hook.title,
        consequences: &[
            "No messages are sent until you enable it again. Events in the meantime are not delivered later.",
            "Pending retries are cancelled.",
        ],
        button: "Disable webhook",
        action: at.webhook_path(webhook.id, "off"),
        back: hook.path,
        here: teams::PATH,
    };
    Ok(confirm_page(&web, &at.signed_in.session, &confirmation))
}

/// Disables the webhook.
pub(crate) async fn off(
    State(web): State<Arc<Web>>,
    client: ClientIp,
    Path(path): Path<(String, String)>,
    request: Request,
) -> Result<Response, Problem> {
    switch(&web, client, path, request, ("disabled", "off")).await
}

/// Enables the webhook.
pub(crate) async fn on(
    State(web): State<Arc<Web>>,
    client: ClientIp,
    Path(path): Path<(String, String)>,
    request: Request,
) -> Result<Response, Problem> {
    switch(&web, client, path, request, ("enabled", "on")).await
}

async fn switch(
    web: &Web,
    client: ClientIp,
    (team, webhook): (String, String),
    request: Request,
    (status, notice): (&str, &str),
) -> Result<Response, Problem> {
    let (at, _) = web.submitted_form_in_team(client, &team, request).await?;
    let (webhook, caller) = at.find_webhook_counted(web, &webhook).await?;
    let change_request =
        webhooks::EndpointRequest { status: Some(status.to_owned()), ..webhooks::EndpointRequest::default() };
    let webhook = change(&web.core, caller, webhook.id, &change_request).await?;
    Ok(see_other(&format!("{}?{notice}", at.webhook_path(webhook.id, ""))))
}
