//! `/teams/{team}/webhooks/{webhook}/deliveries/{delivery}`: one delivery with its message and attempts.

use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use grabd_domain::Fault;
use grabd_engine::Error;
use grabd_engine::webhooks::{self, Message};
use http::StatusCode;
use serde_json::Value;

use super::view::{DeliveryView, WebhookView};
use super::{delivery_id, no_delivery};
use crate::extract::{QueryForm, TeamPage};
use crate::page::{Layout, page};
use crate::problem::Problem;
use crate::state::Web;

/// The query parameter of a delivery that was just sent.
pub(super) const SENT: &str = "sent";
/// How long the page of a delivery that was just sent waits for the result. Most receivers respond sooner, and the page
/// still loads fast enough.
const RESULT_WAIT: Duration = Duration::from_secs(3);

#[derive(Template)]
#[template(path = "delivery.html")]
struct DeliveryPage<'a> {
    layout: Layout,
    form_token: &'a str,
    hook: WebhookView,
    sent: DeliveryView,
    /// The page of the capture that the message is about.
    capture: Option<String>,
    /// The message as formatted JSON. `None` before the first attempt.
    body: Option<String>,
}

/// Shows the page.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    TeamPage(at): TeamPage,
    Path((_, webhook, delivery)): Path<(String, String, String)>,
    QueryForm(query): QueryForm,
) -> Result<Response, Problem> {
    let (webhook, caller) = at.find_webhook_counted(&web, &webhook).await?;
    let id = delivery_id(&delivery)?;
    let wait = if query.has(SENT) { RESULT_WAIT } else { Duration::ZERO };
    let message = webhooks::await_delivery(&web.core, caller, webhook.id, id, wait).await;
    let message = match message.map_err(Error::into_fault) {
        Ok(message) => message,
        Err(Fault::NotFound { .. }) => return Err(no_delivery()),
        Err(fault) => return Err(fault.into()),
    };
    let Message { delivery, grab, body } = message;
    let template = DeliveryPage {
        layout: web.webhook_layout(&at),
        form_token: at.form_token(),
        hook: WebhookView::of(&webhook, &at),
        sent: DeliveryView::of(&delivery, &webhook, &at, web.core.now()),
        capture: grab.map(|grab| at.path(&format!("grabs/{grab}"))),
        body: body.map(|body| pretty_json(&body)),
    };
    Ok(page(StatusCode::OK, &template))
}

/// Formats JSON with line breaks. Other text is returned unchanged.
fn pretty_json(body: &str) -> String {
    let value = serde_json::from_str::<Value>(body);
    value.and_then(|value| serde_json::to_string_pretty(&value)).unwrap_or_else(|_| body.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pretty_json_keeps_the_order_of_members() {
        assert_eq!(pretty_json(r#"{"b":1,"a":{"c":null}}"#), "{\n  \"b\": 1,\n  \"a\": {\n    \"c\": null\n  }\n}");
        assert_eq!(pretty_json("{"), "{");
    }
}
