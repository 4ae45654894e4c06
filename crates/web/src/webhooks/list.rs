//! `/teams/{team}/webhooks`: the webhooks of a team, in both environments.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_engine::webhooks::{self, DeliveriesRequest};
use http::StatusCode;

use super::view::{DeliveryView, WebhookView};
use crate::Web;
use crate::form::Form;
use crate::grabs::ENVIRONMENTS;
use crate::page::{Layout, page};
use crate::problem::Problem;
use crate::response::{ClientIp, see_other};
use crate::session::sign_in_url_for;

#[derive(Template)]
#[template(path = "webhooks.html")]
struct WebhooksPage {
    layout: Layout,
    team: String,
    is_deleted: bool,
    hooks: Vec<Row>,
    create: String,
}

/// A webhook with its latest delivery.
struct Row {
    hook: WebhookView,
    last: Option<DeliveryView>,
}

/// Shows the list.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    client: ClientIp,
    Path(team): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    web.limits.pages.take(client.0)?;
    let Some(at) = web.team_context(request.headers(), &team).await? else {
        return Ok(see_other(&sign_in_url_for(request.uri())));
    };
    let (now, newest) = (web.core.now(), DeliveriesRequest { limit: Some(1), ..DeliveriesRequest::default() });
    let mut hooks = Vec::new();
    // The number of webhooks is small, so one query for each is acceptable.
    for environment in ENVIRONMENTS {
        let caller = at.team_member.admit(&web.core, environment)?;
        for webhook in webhooks::list(&web.core, caller).await? {
            let deliveries = webhooks::list_deliveries(&web.core, caller, webhook.id, &newest).await?.deliveries;
            let last = deliveries.first().map(|delivery| DeliveryView::of(delivery, &webhook, &at, now));
            hooks.push(Row { hook: WebhookView::of(&webhook, &at), last });
        }
    }
    let query = Form::parse(request.uri().query().unwrap_or_default().as_bytes());
    let template = WebhooksPage {
        layout: web.webhook_layout(&at),
        team: at.team_member.team_name.clone(),
        is_deleted: query.has("deleted"),
        hooks,
        create: at.path("webhooks/new"),
    };
    Ok(page(StatusCode::OK, &template))
}
