//! `/teams/{team}/webhooks/new`: creates a webhook. The response is the only page that shows its secret.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use grabd_domain::credentials::Environment;
use grabd_engine::webhooks;
use http::StatusCode;

use super::change::{EnvironmentChoice, FormPage};
use super::fields::{self, Fields};
use super::{PAGE, secret};
use crate::environments::{ENVIRONMENT, ENVIRONMENTS, chosen_environment, environment_name};
use crate::extract::{TeamForm, TeamPage};
use crate::form::FieldError;
use crate::page::page;
use crate::problem::Problem;
use crate::state::Web;
use crate::team::TeamContext;

/// Shows the form.
pub(crate) async fn show(State(web): State<Arc<Web>>, TeamPage(at): TeamPage) -> Result<Response, Problem> {
    Ok(form(&web, &at, StatusCode::OK, Fields::empty(), Some(Environment::Live), &[]))
}

/// Creates the webhook.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    TeamForm { at, form: input }: TeamForm,
) -> Result<Response, Problem> {
    let environment = chosen_environment(&input);
    let field_error = match environment {
        None => FieldError { field: ENVIRONMENT, message: "Choose an environment.".to_owned() },
        Some(environment) => {
            let caller = at.team_member.admit(&web.core, environment).await?;
            match webhooks::register(&web.core, caller, &fields::request(&input)).await {
                Ok((webhook, new)) => return Ok(secret::show_once(&web, &at, &webhook, &new, true)),
                Err(error) => fields::field_error(error.into_fault(), &input)?,
            }
        }
    };
    let errors = [field_error];
    Ok(form(&web, &at, StatusCode::UNPROCESSABLE_ENTITY, Fields::of(&input, &errors), environment, &errors))
}

fn form(
    web: &Web,
    at: &TeamContext,
    status: StatusCode,
    fields: Fields,
    chosen: Option<Environment>,
    errors: &[FieldError],
) -> Response {
    let choice = |environment: Environment| EnvironmentChoice {
        value: environment.as_str(),
        name: environment_name(environment),
        about: match environment {
            Environment::Live => "Asynchronous live captures, and live captures made on these pages.",
            Environment::Test => "Test messages only. Test captures send no events.",
        },
        is_chosen: Some(environment) == chosen,
    };
    let own = errors.iter().find(|field_error| field_error.field == ENVIRONMENT);
    let template = FormPage {
        layout: web.webhook_layout(at),
        form_token: at.form_token(),
        title: "New webhook",
        action: at.path("webhooks/new"),
        back: at.path(PAGE),
        fields,
        environments: ENVIRONMENTS.map(choice).into(),
        environment_error: own.map(|field_error| field_error.message.clone()),
        button: "Create webhook",
        errors,
    };
    page(status, &template)
}
