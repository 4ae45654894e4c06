//! `/teams/{team}/proxies/new`: creates a proxy.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use grabd_domain::credentials::Environment;
use grabd_engine::proxies;
use http::StatusCode;

use super::fields::{self, NAME, URL, USERNAME};
use super::{PAGE, check_enabled};
use crate::environments::{ENVIRONMENT, ENVIRONMENTS, chosen_environment, environment_name};
use crate::extract::{TeamForm, TeamPage};
use crate::form::{Field, FieldError, Form};
use crate::page::{Layout, page};
use crate::problem::Problem;
use crate::response::see_other;
use crate::state::Web;
use crate::team::TeamContext;

#[derive(Template)]
#[template(path = "proxy_new.html")]
struct NewPage<'a> {
    layout: Layout,
    form_token: &'a str,
    action: String,
    back: String,
    name: Field,
    url: Field,
    username: Field,
    password: Field,
    environments: Vec<EnvironmentChoice>,
    environment_error: Option<String>,
    errors: &'a [FieldError],
}

/// An environment option.
struct EnvironmentChoice {
    value: &'static str,
    name: &'static str,
    about: &'static str,
    is_chosen: bool,
}

/// Shows the form.
pub(crate) async fn show(State(web): State<Arc<Web>>, TeamPage(at): TeamPage) -> Result<Response, Problem> {
    check_enabled(&web)?;
    Ok(form(&web, &at, StatusCode::OK, &Form::default(), Some(Environment::Live), &[]))
}

/// Creates the proxy.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    TeamForm { at, form: input }: TeamForm,
) -> Result<Response, Problem> {
    check_enabled(&web)?;
    let environment = chosen_environment(&input);
    let field_error = match environment {
        None => FieldError { field: ENVIRONMENT, message: "Choose an environment.".to_owned() },
        Some(environment) => {
            let caller = at.team_member.admit(&web.core, environment).await?;
            match proxies::create(&web.core, caller, &fields::request(&input)).await {
                Ok(_) => return Ok(see_other(&format!("{}?created", at.path(PAGE)))),
                Err(error) => fields::field_error(error.into_fault(), &input)?,
            }
        }
    };
    Ok(form(&web, &at, StatusCode::UNPROCESSABLE_ENTITY, &input, environment, &[field_error]))
}

fn form(
    web: &Web,
    at: &TeamContext,
    status: StatusCode,
    input: &Form,
    chosen: Option<Environment>,
    errors: &[FieldError],
) -> Response {
    let choice = |environment: Environment| EnvironmentChoice {
        value: environment.as_str(),
        name: environment_name(environment),
        about: match environment {
            Environment::Live => "Live captures load pages through it.",
            Environment::Test => "Test captures check that it exists, and load nothing.",
        },
        is_chosen: Some(environment) == chosen,
    };
    let own = errors.iter().find(|field_error| field_error.field == ENVIRONMENT);
    let template = NewPage {
        layout: web.proxy_layout(at),
        form_token: at.form_token(),
        action: at.path("proxies/new"),
        back: at.path(PAGE),
        name: fields::name_field(input.get(NAME), errors),
        url: fields::url_field(input.get(URL), errors),
        username: fields::username_field("Leave it empty if the proxy needs none.", input.get(USERNAME), errors),
        password: fields::password_field("It is encrypted, and never shown again.", errors),
        environments: ENVIRONMENTS.map(choice).into(),
        environment_error: own.map(|field_error| field_error.message.clone()),
        errors,
    };
    page(status, &template)
}
