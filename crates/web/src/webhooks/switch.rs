//! `/teams/{team}/webhooks/{webhook}/off` and `…/on`

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_domain::webhooks;
use grabd_engine::webhooks::change;

use super::view::Hook;
use crate::Web;
use crate::confirm::{Question, ask};
use crate::frame::{Client, see_other};
use crate::problem::Problem;
use crate::session::sign_in_first_at;
use crate::teams;

/// Asks whether to switch it off.
pub(crate) async fn ask_to_end(
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
        deed: "Switch off",
        what: &hook.title,
        consequences: &[
            "Nothing is sent until it is switched on again, and what ends meanwhile is not told later.",
            "Messages that were to be repeated are given up.",
        ],
        button: "Switch off",
        action: at.webhook_path(webhook.id, "off"),
        back: hook.path,
        here: teams::PATH,
    };
    Ok(ask(&web, &at.signed_in.session, &question))
}

/// Switches it off.
pub(crate) async fn off(
    State(web): State<Arc<Web>>,
    client: Client,
    Path(path): Path<(String, String)>,
    request: Request,
) -> Result<Response, Problem> {
    switch(&web, client, path, request, ("disabled", "off")).await
}

/// Switches it on.
pub(crate) async fn on(
    State(web): State<Arc<Web>>,
    client: Client,
    Path(path): Path<(String, String)>,
    request: Request,
) -> Result<Response, Problem> {
    switch(&web, client, path, request, ("enabled", "on")).await
}

async fn switch(
    web: &Web,
    client: Client,
    (team, webhook): (String, String),
    request: Request,
    (status, notice): (&str, &str),
) -> Result<Response, Problem> {
    let (at, _) = web.sent_in_team(client, &team, request).await?;
    let (webhook, caller) = at.enter_webhook(web, &webhook).await?;
    let wanted = webhooks::Request { status: Some(status.to_owned()), ..webhooks::Request::default() };
    let webhook = change(&web.core, caller, webhook.id, &wanted).await?;
    Ok(see_other(&format!("{}?{notice}", at.webhook_path(webhook.id, ""))))
}
