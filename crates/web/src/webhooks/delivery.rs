//! `/teams/{team}/webhooks/{webhook}/deliveries/{delivery}`: one message, what it says, and how sending it went.

use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_domain::Fault;
use grabd_engine::webhooks::{self, Message};
use http::StatusCode;
use serde_json::Value;

use super::view::{Hook, Sent};
use super::{delivery_id, no_delivery};
use crate::Web;
use crate::form::Form;
use crate::frame::{Client, see_other};
use crate::page::{Frame, page};
use crate::problem::Problem;
use crate::session::sign_in_first_at;

/// The field of the query that says it was sent a moment ago.
pub(super) const SENT: &str = "sent";
/// How long the page of what was just sent waits for the answer. Most receivers have answered by then, and a person has
/// not begun to wonder.
const PATIENCE: Duration = Duration::from_secs(3);

#[derive(Template)]
#[template(path = "delivery.html")]
struct DeliveryPage<'a> {
    frame: Frame,
    form_token: &'a str,
    hook: Hook,
    sent: Sent,
    /// The page of the capture that it is about.
    capture: Option<String>,
    /// What it says, with a line for each member. None was written before the first attempt.
    body: Option<String>,
}

/// The page.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    client: Client,
    Path((team, webhook, delivery)): Path<(String, String, String)>,
    request: Request,
) -> Result<Response, Problem> {
    web.limits.pages.take(client.0)?;
    let Some(at) = web.at_team(request.headers(), &team).await? else {
        return Ok(see_other(&sign_in_first_at(request.uri())));
    };
    let (webhook, caller) = at.enter_webhook(&web, &webhook).await?;
    let id = delivery_id(&delivery)?;
    let query = Form::parse(request.uri().query().unwrap_or_default().as_bytes());
    let patience = if query.has(SENT) { PATIENCE } else { Duration::ZERO };
    let message = match webhooks::await_delivery(&web.core, caller, webhook.id, id, patience).await {
        Ok(message) => message,
        Err(Fault::NotFound { .. }) => return Err(no_delivery()),
        Err(fault) => return Err(fault.into()),
    };
    let Message { delivery, grab, body } = message;
    let template = DeliveryPage {
        frame: web.webhook_frame(&at),
        form_token: at.form_token(),
        hook: Hook::of(&webhook, &at),
        sent: Sent::of(&delivery, &webhook, &at, web.core.now()),
        capture: grab.map(|grab| at.path(&format!("grabs/{grab}"))),
        body: body.map(|body| in_lines(&body)),
    };
    Ok(page(StatusCode::OK, &template))
}

/// JSON as people read it; what is none stays as it is.
fn in_lines(body: &str) -> String {
    let value = serde_json::from_str::<Value>(body);
    value.and_then(|value| serde_json::to_string_pretty(&value)).unwrap_or_else(|_| body.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_keep_their_order() {
        assert_eq!(in_lines(r#"{"b":1,"a":{"c":null}}"#), "{\n  \"b\": 1,\n  \"a\": {\n    \"c\": null\n  }\n}");
        assert_eq!(in_lines("{"), "{");
    }
}
