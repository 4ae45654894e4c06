//! `/teams/{team}/webhooks/{webhook}/secret`: a new secret, which the answer shows this once.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_domain::webhooks::{Endpoint, ROTATION_OVERLAP};
use grabd_engine::webhooks::{self, Secret};
use http::StatusCode;

use super::view::Hook;
use crate::Web;
use crate::confirm::{Question, ask};
use crate::frame::{Client, see_other};
use crate::moment::Moment;
use crate::page::{Frame, Rights, page_with};
use crate::problem::Problem;
use crate::session::sign_in_first_at;
use crate::team::AtTeam;
use crate::teams;

const CONSEQUENCES: [&str; 3] = [
    "The new secret is shown once, on the next page.",
    "For 24 hours, messages are signed with the new one and the present one, so that your receiver can change over.",
    "One that was replaced before stops signing at once.",
];
const _: () = assert!(ROTATION_OVERLAP.as_secs() == 24 * 60 * 60, "the question says how long both are good");

#[derive(Template)]
#[template(path = "webhook_secret.html")]
struct SecretPage {
    frame: Frame,
    is_new: bool,
    hook: Hook,
    secret: String,
    /// Until when the secret before signs too.
    until: Moment,
}

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
        deed: "Make a new secret for",
        what: &hook.title,
        consequences: &CONSEQUENCES,
        button: "New secret",
        action: at.webhook_path(webhook.id, "secret"),
        back: hook.path,
        here: teams::PATH,
    };
    Ok(ask(&web, &at.signed_in.session, &question))
}

/// Makes it.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    client: Client,
    Path((team, webhook)): Path<(String, String)>,
    request: Request,
) -> Result<Response, Problem> {
    let (at, _) = web.sent_in_team(client, &team, request).await?;
    let (webhook, caller) = at.enter_webhook(&web, &webhook).await?;
    let (webhook, secret) = webhooks::rotate_secret(&web.core, caller, webhook.id).await?;
    Ok(show_once(&web, &at, &webhook, &secret, false))
}

/// The page with a secret. No other has it.
pub(super) fn show_once(web: &Web, at: &AtTeam, webhook: &Endpoint, secret: &Secret, is_new: bool) -> Response {
    let template = SecretPage {
        frame: Frame { script: Some(web.assets.copy.path.clone()), ..web.webhook_frame(at) },
        is_new,
        hook: Hook::of(webhook, at),
        secret: secret.reveal(),
        until: (web.core.now() + ROTATION_OVERLAP).into(),
    };
    page_with(Rights { script: true, ..Rights::default() }, StatusCode::OK, &template)
}
