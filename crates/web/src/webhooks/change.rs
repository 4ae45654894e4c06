//! `/teams/{team}/webhooks/{webhook}/change`: changes the URL, events and description of a webhook.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use grabd_domain::ids::EndpointId;
use grabd_engine::webhooks;
use http::StatusCode;

use super::fields::{self, Fields};
use crate::extract::{TeamForm, TeamPage};
use crate::form::FieldError;
use crate::page::{Layout, page};
use crate::problem::Problem;
use crate::response::see_other;
use crate::state::Web;
use crate::team::TeamContext;

/// The form for new and existing webhooks.
#[derive(Template)]
#[template(path = "webhook_form.html")]
pub(super) struct FormPage<'a> {
    pub(super) layout: Layout,
    pub(super) form_token: &'a str,
    pub(super) title: &'static str,
    pub(super) action: String,
    pub(super) back: String,
    pub(super) fields: Fields,
    /// The environments to choose from. Empty for an existing webhook.
    pub(super) environments: Vec<EnvironmentChoice>,
    pub(super) environment_error: Option<String>,
    pub(super) button: &'static str,
    pub(super) errors: &'a [FieldError],
}

/// An environment option.
pub(super) struct EnvironmentChoice {
    pub(super) value: &'static str,
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) is_chosen: bool,
}

/// Shows the form with the current values.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    TeamPage(at): TeamPage,
    Path((_, webhook)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let (webhook, _) = at.find_webhook_counted(&web, &webhook).await?;
    Ok(form(&web, &at, webhook.id, StatusCode::OK, Fields::of_webhook(&webhook), &[]))
}

/// Saves the changes.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    Path((_, webhook)): Path<(String, String)>,
    TeamForm { at, form: input }: TeamForm,
) -> Result<Response, Problem> {
    let (webhook, caller) = at.find_webhook_counted(&web, &webhook).await?;
    match webhooks::change(&web.core, caller, webhook.id, &fields::request(&input)).await {
        Ok(changed) => Ok(see_other(&format!("{}?changed", at.webhook_path(changed.id, "")))),
        Err(error) => {
            let errors = [fields::field_error(error.into_fault(), &input)?];
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            Ok(form(&web, &at, webhook.id, status, Fields::of(&input, &errors), &errors))
        }
    }
}

fn form(
    web: &Web,
    at: &TeamContext,
    webhook: EndpointId,
    status: StatusCode,
    fields: Fields,
    errors: &[FieldError],
) -> Response {
    let template = FormPage {
        layout: web.webhook_layout(at),
        form_token: at.form_token(),
        title: "Edit webhook",
        action: at.webhook_path(webhook, "change"),
        back: at.webhook_path(webhook, ""),
        fields,
        environments: Vec::new(),
        environment_error: None,
        button: "Save changes",
        errors,
    };
    page(status, &template)
}
