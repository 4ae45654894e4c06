//! `/teams/{team}/webhooks/{webhook}`: how it stands, and what was sent to it.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_domain::Fault;
use grabd_engine::webhooks::{self, DeliveriesRequest};
use http::StatusCode;

use super::PAGE;
use super::view::{Hook, Sent};
use crate::Web;
use crate::form::Form;
use crate::frame::{Client, see_other};
use crate::page::{Frame, page};
use crate::problem::Problem;
use crate::session::sign_in_first_at;

/// The field of the query that tells where in the list to go on.
const AFTER: &str = "starting_after";

#[derive(Template)]
#[template(path = "webhook.html")]
struct WebhookPage<'a> {
    frame: Frame,
    form_token: &'a str,
    notice: &'static str,
    list: String,
    hook: Hook,
    sent: Vec<Sent>,
    newest: Option<String>,
    older: Option<String>,
}

/// The page.
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
    let (webhook, caller) = at.enter_webhook(&web, &webhook).await?;
    let query = Form::parse(request.uri().query().unwrap_or_default().as_bytes());
    let after = Some(query.one(AFTER)).filter(|after| !after.is_empty()).map(str::to_owned);
    let is_further = after.is_some();
    let wanted = DeliveriesRequest { starting_after: after, ..DeliveriesRequest::default() };
    let listed = match webhooks::list_deliveries(&web.core, caller, webhook.id, &wanted).await {
        Ok(listed) => listed,
        Err(Fault::BadRequest(_)) => {
            return Err(Problem::bad_request(
                "There is no such place in the list",
                "The address names a message that is not in this list. What was sent is listed for 30 days.",
                "Begin at the newest one.",
            ));
        }
        Err(fault) => return Err(fault.into()),
    };
    let (hook, now) = (Hook::of(&webhook, &at), web.core.now());
    let last = listed.deliveries.last().filter(|_| listed.has_more);
    let template = WebhookPage {
        frame: web.webhook_frame(&at),
        form_token: at.form_token(),
        notice: notice(&query, hook.is_on),
        list: at.path(PAGE),
        sent: listed.deliveries.iter().map(|delivery| Sent::of(delivery, &webhook, &at, now)).collect(),
        newest: is_further.then(|| hook.path.clone()),
        older: last.map(|last| format!("{}?{AFTER}={}", hook.path, last.id)),
        hook,
    };
    Ok(page(StatusCode::OK, &template))
}

/// What was done a moment ago, as long as it is so.
fn notice(query: &Form, is_on: bool) -> &'static str {
    if query.has("changed") {
        "The changes are kept. They count from the next message on."
    } else if query.has("on") && is_on {
        "The webhook is switched on. What it failed before is forgiven."
    } else if query.has("off") && !is_on {
        "The webhook is switched off. What was still to be sent is given up."
    } else {
        ""
    }
}
