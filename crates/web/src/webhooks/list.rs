//! `/teams/{team}/webhooks`: the webhooks of a team, in both environments.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use grabd_engine::webhooks::{self, DeliveriesRequest};
use http::StatusCode;

use super::view::{CreatorView, DeliveryView, WebhookView};
use crate::environments::ENVIRONMENTS;
use crate::extract::{QueryForm, TeamPage};
use crate::page::{Layout, page};
use crate::problem::Problem;
use crate::state::Web;

#[derive(Template)]
#[template(path = "webhooks.html")]
struct WebhooksPage {
    layout: Layout,
    team: String,
    is_deleted: bool,
    /// Whether it is unknown who created one of them.
    has_unknown: bool,
    hooks: Vec<Row>,
    create: String,
}

/// A webhook with its latest delivery.
struct Row {
    hook: WebhookView,
    creator: CreatorView,
    last: Option<DeliveryView>,
}

/// Shows the list.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    TeamPage(at): TeamPage,
    QueryForm(query): QueryForm,
) -> Result<Response, Problem> {
    let (now, newest) = (web.core.now(), DeliveriesRequest { limit: Some(1), ..DeliveriesRequest::default() });
    let mut hooks = Vec::new();
    // The number of webhooks is small, so one query for each is acceptable.
    for environment in ENVIRONMENTS {
        let caller = at.team_member.admit(&web.core, environment).await?;
        let listed = webhooks::list(&web.core, caller).await?;
        let names = webhooks::app_names(&web.core, &listed).await?;
        for webhook in listed {
            let deliveries = webhooks::list_deliveries(&web.core, caller, webhook.id, &newest).await?.deliveries;
            let last = deliveries.first().map(|delivery| DeliveryView::of(delivery, &webhook, &at, now));
            let creator = CreatorView::of(&webhook, &names);
            hooks.push(Row { hook: WebhookView::of(&webhook, &at), creator, last });
        }
    }
    let template = WebhooksPage {
        layout: web.webhook_layout(&at),
        team: at.team_member.team_name.clone(),
        is_deleted: query.has("deleted"),
        has_unknown: hooks.iter().any(|row| row.creator.is_unknown()),
        hooks,
        create: at.path("webhooks/new"),
    };
    Ok(page(StatusCode::OK, &template))
}
