//! `/teams/{team}/webhooks/{webhook}/secret`: rotates the secret. The response is the only page that shows the new one.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use grabd_domain::webhooks::{Endpoint, ROTATION_OVERLAP};
use grabd_engine::webhooks::{self, Secret};
use http::StatusCode;

use super::view::WebhookView;
use crate::confirm::{Confirmation, confirm_page};
use crate::extract::{TeamForm, TeamPage};
use crate::page::{Layout, page};
use crate::problem::Problem;
use crate::state::Web;
use crate::team::TeamContext;
use crate::time_format::Moment;

const CONSEQUENCES: [&str; 3] = [
    "The new secret is shown once, on the next page.",
    "For 24 hours, messages are signed with both secrets, so that you can update your endpoint.",
    "A secret that was replaced earlier stops working immediately.",
];
const _: () = assert!(ROTATION_OVERLAP.as_secs() == 24 * 60 * 60, "the text of the page says 24 hours");

#[derive(Template)]
#[template(path = "webhook_secret.html")]
struct SecretPage {
    layout: Layout,
    is_new: bool,
    hook: WebhookView,
    secret: String,
    /// Until when the previous secret also signs.
    until: Moment,
}

/// Asks for confirmation.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    TeamPage(at): TeamPage,
    Path((_, webhook)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let (webhook, _) = at.find_webhook_counted(&web, &webhook).await?;
    let hook = WebhookView::of(&webhook, &at);
    let confirmation = Confirmation {
        title: "Rotate the secret of",
        subject: &hook.title,
        consequences: &CONSEQUENCES,
        button: "Rotate secret",
        is_final: false,
        action: at.webhook_path(webhook.id, "secret"),
        back: hook.path,
    };
    Ok(confirm_page(web.webhook_layout(&at), &at.signed_in.session, &confirmation))
}

/// Rotates the secret.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    Path((_, webhook)): Path<(String, String)>,
    TeamForm { at, .. }: TeamForm,
) -> Result<Response, Problem> {
    let (webhook, caller) = at.find_webhook_counted(&web, &webhook).await?;
    let (webhook, secret) = webhooks::rotate_secret(&web.core, caller, webhook.id).await?;
    Ok(show_once(&web, &at, &webhook, &secret, false))
}

/// Renders the page with a new secret.
pub(super) fn show_once(web: &Web, at: &TeamContext, webhook: &Endpoint, secret: &Secret, is_new: bool) -> Response {
    let template = SecretPage {
        layout: Layout { script: Some(web.assets.key.path.clone()), ..web.webhook_layout(at) },
        is_new,
        hook: WebhookView::of(webhook, at),
        secret: secret.reveal(),
        until: (web.core.now() + ROTATION_OVERLAP).into(),
    };
    page(StatusCode::OK, &template)
}
