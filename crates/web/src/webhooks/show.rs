//! `/teams/{team}/webhooks/{webhook}`: the status of a webhook, and its deliveries.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use grabd_domain::Fault;
use grabd_engine::Error;
use grabd_engine::webhooks::{self, DeliveriesRequest};
use http::StatusCode;

use super::PAGE;
use super::view::{CreatorView, DeliveryView, WebhookView};
use crate::extract::{QueryForm, TeamPage};
use crate::form::Form;
use crate::page::{Layout, page};
use crate::problem::Problem;
use crate::state::Web;

/// The query parameter of the pagination.
const AFTER: &str = "starting_after";

#[derive(Template)]
#[template(path = "webhook.html")]
struct WebhookPage<'a> {
    layout: Layout,
    form_token: &'a str,
    notice: &'static str,
    list: String,
    hook: WebhookView,
    creator: CreatorView,
    sent: Vec<DeliveryView>,
    newest: Option<String>,
    older: Option<String>,
}

/// Shows the page.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    TeamPage(at): TeamPage,
    Path((_, webhook)): Path<(String, String)>,
    QueryForm(query): QueryForm,
) -> Result<Response, Problem> {
    let (webhook, caller) = at.find_webhook_counted(&web, &webhook).await?;
    let after = Some(query.get(AFTER)).filter(|after| !after.is_empty()).map(str::to_owned);
    let is_later_page = after.is_some();
    let list_request = DeliveriesRequest { starting_after: after, ..DeliveriesRequest::default() };
    let listed = webhooks::list_deliveries(&web.core, caller, webhook.id, &list_request).await;
    let listed = match listed.map_err(Error::into_fault) {
        Ok(listed) => listed,
        Err(Fault::BadRequest(_)) => {
            return Err(Problem::bad_request(
                "Invalid page link",
                "The link refers to a delivery that is not in this list. Deliveries are listed for 30 days.",
                "Go back to the first page.",
            ));
        }
        Err(fault) => return Err(fault.into()),
    };
    let (hook, now) = (WebhookView::of(&webhook, &at), web.core.now());
    let names = webhooks::app_names(&web.core, std::slice::from_ref(&webhook)).await?;
    let last = listed.deliveries.last().filter(|_| listed.has_more);
    let template = WebhookPage {
        layout: web.webhook_layout(&at),
        form_token: at.form_token(),
        notice: notice(&query, hook.is_on, webhook.creator.is_some()),
        creator: CreatorView::of(&webhook, &names),
        list: at.path(PAGE),
        sent: listed.deliveries.iter().map(|delivery| DeliveryView::of(delivery, &webhook, &at, now)).collect(),
        newest: is_later_page.then(|| hook.path.clone()),
        older: last.map(|last| format!("{}?{AFTER}={}", hook.path, last.id)),
        hook,
    };
    Ok(page(StatusCode::OK, &template))
}

/// The notice for the query parameter, if it is still true.
fn notice(query: &Form, is_on: bool, is_known: bool) -> &'static str {
    if query.has("changed") {
        "Changes saved. They apply from the next message on."
    } else if query.has("on") && is_on {
        "Webhook enabled."
    } else if query.has("off") && !is_on {
        "Webhook disabled. Pending messages were cancelled."
    } else if query.has("kept") && is_known {
        "Webhook kept."
    } else {
        ""
    }
}
