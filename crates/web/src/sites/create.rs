//! `/teams/{team}/sites/new`: the form that starts a job.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use grabd_domain::credentials::Environment;
use grabd_engine::{Error, sites};
use http::StatusCode;

use super::PAGE;
use super::fields::{self, DEFAULTS, Fields, LINKS, SITEMAP, SOURCE};
use crate::environments::{ENVIRONMENT, ENVIRONMENTS, chosen_environment, environment_name};
use crate::extract::{QueryForm, TeamForm, TeamPage};
use crate::form::{FieldError, Form};
use crate::grabs::options::{Input, Options};
use crate::grabs::unavailable::unavailable_options;
use crate::page::{Layout, page};
use crate::problem::Problem;
use crate::response::see_other;
use crate::state::Web;
use crate::team::TeamContext;

#[derive(Template)]
#[template(path = "site_form.html")]
struct FormPage<'a> {
    layout: Layout,
    form_token: &'a str,
    action: String,
    back: String,
    sources: Vec<Choice>,
    source_error: Option<String>,
    fields: Fields,
    environments: Vec<Choice>,
    environment_error: Option<String>,
    options: Options,
    errors: &'a [FieldError],
}

/// A value to choose.
struct Choice {
    value: &'static str,
    name: &'static str,
    about: &'static str,
    is_chosen: bool,
}

/// Shows the form, prefilled with the options in the query.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    TeamPage(at): TeamPage,
    QueryForm(query): QueryForm,
) -> Result<Response, Problem> {
    let given = query.fields().iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let defaults = DEFAULTS.into_iter().filter(|(name, _)| !query.has(name));
    Ok(form(&web, &at, StatusCode::OK, &defaults.chain(given).collect(), &[]))
}

/// Starts the job and redirects to its page.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    TeamForm { at, form: input }: TeamForm,
) -> Result<Response, Problem> {
    let error = match (chosen_environment(&input), [LINKS, SITEMAP].contains(&input.get(SOURCE))) {
        (None, _) => FieldError { field: ENVIRONMENT, message: "Choose an environment.".to_owned() },
        (Some(_), false) => FieldError { field: SOURCE, message: "Choose how pages are found.".to_owned() },
        (Some(environment), true) => {
            let caller = at.team_member.admit(&web.core, environment).await?;
            match sites::create(&web.core, caller, &fields::request(&input)).await.map_err(Error::into_fault) {
                Ok(site) => return Ok(see_other(&format!("{}?created", at.site_path(site.id, "")))),
                Err(fault) => fields::field_error(fault)?,
            }
        }
    };
    Ok(form(&web, &at, StatusCode::UNPROCESSABLE_ENTITY, &input, &[error]))
}

fn form(web: &Web, at: &TeamContext, status: StatusCode, input: &Form, errors: &[FieldError]) -> Response {
    let template = FormPage {
        layout: web.site_layout(at),
        form_token: at.form_token(),
        action: at.path("sites/new"),
        back: at.path(PAGE),
        sources: sources(input),
        source_error: fields::error_of(SOURCE, errors),
        fields: Fields::of(input, errors),
        environments: environments(chosen_environment(input).unwrap_or(Environment::Live)),
        environment_error: fields::error_of(ENVIRONMENT, errors),
        options: options(web, input, errors),
        errors,
    };
    page(status, &template)
}

/// The options that fit a job.
fn options(web: &Web, input: &Form, errors: &[FieldError]) -> Options {
    let mut options = Options::of_repeated(input, errors, &unavailable_options(web));
    options.url.label = "Start page or sitemap";
    options
}

fn sources(input: &Form) -> Vec<Choice> {
    let chosen = input.get(SOURCE);
    let choice = |value, name, about| Choice { value, name, about, is_chosen: value == chosen };
    vec![
        choice(
            LINKS,
            "By links",
            "Begins with the start page, and follows the links of each page to others of the site.",
        ),
        choice(SITEMAP, "By a sitemap", "The address is that of a sitemap, or of a list of addresses in a text file."),
    ]
}

fn environments(chosen: Environment) -> Vec<Choice> {
    let choice = |environment: Environment| Choice {
        value: environment.as_str(),
        name: environment_name(environment),
        about: match environment {
            Environment::Live => "Captures the pages. Each capture costs 1 credit if it succeeds.",
            Environment::Test => "Free placeholders, without opening the pages.",
        },
        is_chosen: environment == chosen,
    };
    ENVIRONMENTS.map(choice).into()
}
