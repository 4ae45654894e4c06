//! `/teams/{team}/webhooks/new`: a form for a webhook, whose answer shows its secret this once.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_domain::credentials::Environment;
use grabd_engine::webhooks;
use http::StatusCode;

use super::change::{FormPage, Place};
use super::fields::{self, Fields};
use super::{PAGE, secret};
use crate::Web;
use crate::apps::list::environment_name;
use crate::form::{Complaint, Form};
use crate::frame::{Client, see_other};
use crate::grabs::ENVIRONMENTS;
use crate::grabs::options::ENVIRONMENT;
use crate::page::page;
use crate::problem::Problem;
use crate::session::sign_in_first_at;
use crate::team::AtTeam;

/// The form.
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
    Ok(form(&web, &at, StatusCode::OK, Fields::empty(), Some(Environment::Live), &[]))
}

/// Registers it.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    client: Client,
    Path(team): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let (at, sent) = web.sent_in_team(client, &team, request).await?;
    let environment = chosen(&sent);
    let complaint = match environment {
        None => Complaint { field: ENVIRONMENT, message: "Choose whether it hears of live captures.".to_owned() },
        Some(environment) => {
            let caller = at.insider.enter(&web.core, environment)?;
            match webhooks::register(&web.core, caller, &fields::request(&sent)).await {
                Ok((webhook, new)) => return Ok(secret::show_once(&web, &at, &webhook, &new, true)),
                Err(fault) => fields::complaint(fault, &sent)?,
            }
        }
    };
    let errors = [complaint];
    Ok(form(&web, &at, StatusCode::UNPROCESSABLE_ENTITY, Fields::of(&sent, &errors), environment, &errors))
}

fn chosen(sent: &Form) -> Option<Environment> {
    ENVIRONMENTS.into_iter().find(|environment| environment.as_str() == sent.one(ENVIRONMENT))
}

fn form(
    web: &Web,
    at: &AtTeam,
    status: StatusCode,
    fields: Fields,
    chosen: Option<Environment>,
    errors: &[Complaint],
) -> Response {
    let place = |environment: Environment| Place {
        value: environment.as_str(),
        name: environment_name(environment),
        about: match environment {
            Environment::Live => "Those made here, and asynchronous ones of the API.",
            Environment::Test => "None: they tell nobody. To try a receiver with test messages.",
        },
        is_chosen: Some(environment) == chosen,
    };
    let own = errors.iter().find(|complaint| complaint.field == ENVIRONMENT);
    let template = FormPage {
        frame: web.webhook_frame(at),
        form_token: at.form_token(),
        title: "New webhook",
        action: at.path("webhooks/new"),
        back: at.path(PAGE),
        fields,
        places: ENVIRONMENTS.map(place).into(),
        environment_error: own.map(|complaint| complaint.message.clone()),
        button: "Make the webhook",
        errors,
    };
    page(status, &template)
}
