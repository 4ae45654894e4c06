//! `/teams/{team}/capture`: the form for a new capture.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use grabd_domain::credentials::Environment;
use grabd_domain::grabs::Class;
use grabd_engine::grabs::{self, CreateRequest, CreateResult};
use grabd_engine::{accounts, random};
use http::StatusCode;

use super::options::{self, Input, Options};
use crate::environments::{ENVIRONMENT, ENVIRONMENTS, environment_name};
use crate::extract::{QueryForm, TeamForm, TeamPage};
use crate::form::{FieldError, Form};
use crate::number::grouped;
use crate::page::{Layout, page};
use crate::problem::Problem;
use crate::response::see_other;
use crate::state::Web;
use crate::team::TeamContext;

/// The field with the idempotency key: a form that is sent twice makes one capture.
const IDEMPOTENCY_FIELD: &str = "once";

#[derive(Template)]
#[template(path = "capture.html")]
struct CapturePage<'a> {
    layout: Layout,
    form_token: &'a str,
    action: String,
    once: String,
    options: Options,
    environments: Vec<Choice>,
    errors: &'a [FieldError],
}

/// An environment option.
struct Choice {
    value: &'static str,
    name: &'static str,
    about: String,
    is_chosen: bool,
}

/// Shows the form, prefilled from the query.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    TeamPage(at): TeamPage,
    QueryForm(query): QueryForm,
) -> Result<Response, Problem> {
    form(&web, &at, StatusCode::OK, &query, random::secret_text(), &[]).await
}

/// Creates the capture and redirects to its page, which shows the status.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    TeamForm { at, form: input }: TeamForm,
) -> Result<Response, Problem> {
    let Some(environment) = chosen(&input) else {
        let message = "Choose a mode: live or test.".to_owned();
        let missing = [FieldError { field: ENVIRONMENT, message }];
        return form(&web, &at, StatusCode::UNPROCESSABLE_ENTITY, &input, random::secret_text(), &missing).await;
    };
    let caller = at.team_member.admit(&web.core, environment)?;
    let create = CreateRequest {
        capture: options::request(&input),
        class: Class::Async,
        idempotency_key: Some(input.get(IDEMPOTENCY_FIELD).to_owned()),
    };
    match grabs::create(&web.core, caller, &create).await {
        Ok(CreateResult { grab, .. }) => Ok(see_other(&at.grab_path(grab.id, ""))),
        Err(fault) => {
            let field_error = options::field_error(fault)?;
            // The form is shown with a new idempotency key, because a capture with the old one may exist.
            form(&web, &at, StatusCode::UNPROCESSABLE_ENTITY, &input, random::secret_text(), &[field_error]).await
        }
    }
}

fn chosen(input: &Form) -> Option<Environment> {
    ENVIRONMENTS.into_iter().find(|environment| environment.as_str() == input.get(ENVIRONMENT))
}

async fn form(
    web: &Web,
    at: &TeamContext,
    status: StatusCode,
    input: &Form,
    once: String,
    errors: &[FieldError],
) -> Result<Response, Problem> {
    let teams = accounts::list_memberships(&web.core, at.team_member.person).await?;
    let here = teams.into_iter().find(|membership| membership.team == at.team_member.team);
    let live_credits = here.map_or(0, |membership| membership.live_credits);
    let preselected = if live_credits > 0 { Environment::Live } else { Environment::Test };
    let chosen = chosen(input).unwrap_or(preselected);
    let choice = |environment: Environment| Choice {
        value: environment.as_str(),
        name: environment_name(environment),
        about: about(environment, live_credits),
        is_chosen: environment == chosen,
    };
    let template = CapturePage {
        layout: web.team_layout(at, "capture"),
        form_token: at.form_token(),
        action: at.path("capture"),
        once,
        options: Options::of(input, errors),
        environments: ENVIRONMENTS.map(choice).into(),
        errors,
    };
    Ok(page(status, &template))
}

fn about(environment: Environment, live_credits: u32) -> String {
    match (environment, live_credits) {
        (Environment::Live, 0) => "Captures the page. The team has no credits left.".to_owned(),
        (Environment::Live, 1) => "Captures the page. Uses the last credit if it succeeds.".to_owned(),
        (Environment::Live, left) => {
            format!("Captures the page. Uses 1 of {} credits if it succeeds.", grouped(left.into()))
        }
        (Environment::Test, _) => {
            "Returns a placeholder image of the same size. Free; the page is not opened.".to_owned()
        }
    }
}
