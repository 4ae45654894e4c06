//! `/teams/{team}/webhooks/{webhook}/delete`

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_engine::webhooks;

use super::PAGE;
use super::view::Hook;
use crate::Web;
use crate::confirm::{Question, ask};
use crate::frame::{Client, see_other};
use crate::problem::Problem;
use crate::session::sign_in_first_at;
use crate::teams;

/// Asks whether to.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    client: Client,
    Path((team, webhook)): Path<(String, String)>,
    request: Request,
) -> Result<Response, Problem> {
    web.limits.pages.take(client.0)?;
    let Some(at) = web.at_team(request.headers(), &team).await? else {
        return Ok(see_other(&sign_in_first_at(request.uri())));
    };
    let (webhook, _) = at.enter_webhook(&web, &webhook).await?;
    let hook = Hook::of(&webhook, &at);
    let question = Question {
        deed: "Delete the webhook",
        what: &hook.title,
        consequences: &[
            "Nothing more is sent there, not even what was to be repeated.",
            "Its secret and the list of what was sent to it are gone for good.",
        ],
        button: "Delete",
        action: at.webhook_path(webhook.id, "delete"),
        back: hook.path,
        here: teams::PATH,
    };
    Ok(ask(&web, &at.signed_in.session, &question))
}

/// Deletes it.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    client: Client,
    Path((team, webhook)): Path<(String, String)>,
    request: Request,
) -> Result<Response, Problem> {
    let (at, _) = web.sent_in_team(client, &team, request).await?;
    let (webhook, caller) = at.enter_webhook(&web, &webhook).await?;
    webhooks::remove(&web.core, caller, webhook.id).await?;
    Ok(see_other(&format!("{}?deleted", at.path(PAGE))))
}
