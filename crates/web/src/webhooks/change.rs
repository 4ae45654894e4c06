//! `/teams/{team}/webhooks/{webhook}/change`: where it is told, what of, and what people call it.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_domain::ids::EndpointId;
use grabd_engine::webhooks;
use http::StatusCode;

use super::fields::{self, Fields};
use crate::Web;
use crate::form::Complaint;
use crate::frame::{Client, see_other};
use crate::page::{Frame, page};
use crate::problem::Problem;
use crate::session::sign_in_first_at;
use crate::team::AtTeam;

/// The form, here and for a new one.
#[derive(Template)]
#[template(path = "webhook_form.html")]
pub(super) struct FormPage<'a> {
    pub(super) frame: Frame,
    pub(super) form_token: &'a str,
    pub(super) title: &'static str,
    pub(super) action: String,
    pub(super) back: String,
    pub(super) fields: Fields,
    /// The environments to choose from; none for a webhook that is in one.
    pub(super) places: Vec<Place>,
    pub(super) environment_error: Option<String>,
    pub(super) button: &'static str,
    pub(super) errors: &'a [Complaint],
}

/// An environment to choose.
pub(super) struct Place {
    pub(super) value: &'static str,
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) is_chosen: bool,
}

/// The form, as the webhook is.
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
    Ok(form(&web, &at, webhook.id, StatusCode::OK, Fields::of_webhook(&webhook), &[]))
}

/// Changes it.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    client: Client,
    Path((team, webhook)): Path<(String, String)>,
    request: Request,
) -> Result<Response, Problem> {
    let (at, sent) = web.sent_in_team(client, &team, request).await?;
    let (webhook, caller) = at.enter_webhook(&web, &webhook).await?;
    match webhooks::change(&web.core, caller, webhook.id, &fields::request(&sent)).await {
        Ok(changed) => Ok(see_other(&format!("{}?changed", at.webhook_path(changed.id, "")))),
        Err(fault) => {
            let errors = [fields::complaint(fault, &sent)?];
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            Ok(form(&web, &at, webhook.id, status, Fields::of(&sent, &errors), &errors))
        }
    }
}

fn form(
    web: &Web,
    at: &AtTeam,
    webhook: EndpointId,
    status: StatusCode,
    fields: Fields,
    errors: &[Complaint],
) -> Response {
    let template = FormPage {
        frame: web.webhook_frame(at),
        form_token: at.form_token(),
        title: "Change the webhook",
        action: at.webhook_path(webhook, "change"),
        back: at.webhook_path(webhook, ""),
        fields,
        places: Vec::new(),
        environment_error: None,
        button: "Keep the changes",
        errors,
    };
    page(status, &template)
}
