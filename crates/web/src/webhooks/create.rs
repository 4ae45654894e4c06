//! `/teams/{team}/webhooks/new`: creates a webhook. The response is the only page that shows its secret.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_domain::credentials::Environment;
use grabd_engine::webhooks;
use http::StatusCode;

use super::change::{EnvironmentChoice, FormPage};
use super::fields::{self, Fields};
use super::{PAGE, secret};
use crate::Web;
use crate::apps::list::environment_name;
use crate::form::{FieldError, Form};
use crate::grabs::ENVIRONMENTS;
use crate::grabs::options::ENVIRONMENT;
use crate::page::page;
use crate::problem::Problem;
use crate::response::{ClientIp, see_other};
use crate::session::sign_in_url_for;
use crate::team::TeamContext;

/// Shows the form.
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
    Ok(form(&web, &at, StatusCode::OK, Fields::empty(), Some(Environment::Live), &[]))
}

/// Creates the webhook.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    client: ClientIp,
    Path(team): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let (at, input) = web.submitted_form_in_team(client, &team, request).await?;
    let environment = chosen(&input);
    let field_error = match environment {
        None => FieldError { field: ENVIRONMENT, message: "Choose an environment.".to_owned() },
        Some(environment) => {
            let caller = at.team_member.admit(&web.core, environment)?;
            match webhooks::register(&web.core, caller, &fields::request(&input)).await {
                Ok((webhook, new)) => return Ok(secret::show_once(&web, &at, &webhook, &new, true)),
                Err(fault) => fields::field_error(fault, &input)?,
            }
        }
    };
    let errors = [field_error];
    Ok(form(&web, &at, StatusCode::UNPROCESSABLE_ENTITY, Fields::of(&input, &errors), environment, &errors))
}

fn chosen(input: &Form) -> Option<Environment> {
    ENVIRONMENTS.into_iter().find(|environment| environment.as_str() == input.get(ENVIRONMENT))
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
