//! `/teams/{team}/webhooks/{webhook}/keep`: keeps a webhook whose creator was not recorded.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use grabd_engine::webhooks;

use crate::extract::TeamForm;
use crate::problem::Problem;
use crate::response::see_other;
use crate::state::Web;

/// Records that a member of the team knows the webhook.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    Path((_, webhook)): Path<(String, String)>,
    TeamForm { at, .. }: TeamForm,
) -> Result<Response, Problem> {
    let (webhook, caller) = at.find_webhook_counted(&web, &webhook).await?;
    webhooks::keep(&web.core, caller, webhook.id).await?;
    Ok(see_other(&format!("{}?kept", at.webhook_path(webhook.id, ""))))
}
