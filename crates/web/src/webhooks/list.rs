//! `/teams/{team}/webhooks`: where the team wants messages, in both environments.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_engine::webhooks::{self, DeliveriesRequest};
use http::StatusCode;

use super::view::{Hook, Sent};
use crate::Web;
use crate::form::Form;
use crate::frame::{Client, see_other};
use crate::grabs::ENVIRONMENTS;
use crate::page::{Frame, page};
use crate::problem::Problem;
use crate::session::sign_in_first_at;

#[derive(Template)]
#[template(path = "webhooks.html")]
struct WebhooksPage {
    frame: Frame,
    team: String,
    is_deleted: bool,
    hooks: Vec<Row>,
    make: String,
}

/// A webhook, and what was sent to it last.
struct Row {
    hook: Hook,
    last: Option<Sent>,
}

/// The list.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    client: Client,
    Path(team): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    web.limits.pages.take(client.0)?;
    let Some(at) = web.at_team(request.headers(), &team).await? else {
        return Ok(see_other(&sign_in_first_at(request.uri())));
    };
    let (now, newest) = (web.core.now(), DeliveriesRequest { limit: Some(1), ..DeliveriesRequest::default() });
    let mut hooks = Vec::new();
    // There are few in each environment, so that one look at each is no matter.
    for environment in ENVIRONMENTS {
        let caller = at.insider.enter(&web.core, environment)?;
        for webhook in webhooks::list(&web.core, caller).await? {
            let sent = webhooks::list_deliveries(&web.core, caller, webhook.id, &newest).await?.deliveries;
            let last = sent.first().map(|delivery| Sent::of(delivery, &webhook, &at, now));
            hooks.push(Row { hook: Hook::of(&webhook, &at), last });
        }
    }
    let query = Form::parse(request.uri().query().unwrap_or_default().as_bytes());
    let template = WebhooksPage {
        frame: web.webhook_frame(&at),
        team: at.insider.team_name.clone(),
        is_deleted: query.has("deleted"),
        hooks,
        make: at.path("webhooks/new"),
    };
    Ok(page(StatusCode::OK, &template))
}
