//! `/teams/{team}/capture`: a form with every option of a capture.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_domain::credentials::Environment;
use grabd_domain::grabs::Class;
use grabd_engine::grabs::{self, Answer, CreateRequest};
use grabd_engine::{accounts, chance};
use http::StatusCode;

use super::ENVIRONMENTS;
use super::options::{self, ENVIRONMENT, Options};
use crate::Web;
use crate::apps::list::environment_name;
use crate::forgery;
use crate::form::{Complaint, Form};
use crate::frame::{Client, see_other};
use crate::number::grouped;
use crate::page::{Frame, page};
use crate::problem::Problem;
use crate::session::sign_in_first_at;
use crate::team::AtTeam;

/// The field that makes one capture of a form that is sent twice.
const ONCE: &str = "once";

#[derive(Template)]
#[template(path = "capture.html")]
struct CapturePage<'a> {
    frame: Frame,
    form_token: &'a str,
    action: String,
    once: String,
    options: Options,
    environments: Vec<Choice>,
    errors: &'a [Complaint],
}

/// An environment to choose.
struct Choice {
    value: &'static str,
    name: &'static str,
    about: String,
    is_chosen: bool,
}

/// The form, beginning with the options of the query.
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
    let query = Form::parse(request.uri().query().unwrap_or_default().as_bytes());
    form(&web, &at, StatusCode::OK, &query, chance::secret_text(), &[]).await
}

/// Captures. A live capture goes into the queue, and its page tells how it stands.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    client: Client,
    Path(team): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    web.limits.pages.take(client.0)?;
    let (head, body) = request.into_parts();
    let sent = Form::read(&head.headers, body).await?;
    let Some(at) = web.at_team(&head.headers, &team).await? else { return Err(Problem::signed_out()) };
    forgery::check(&head.headers, &sent, at.form_token())?;

    let Some(environment) = chosen(&sent) else {
        let message = "Choose whether to capture live or to test.".to_owned();
        let missing = [Complaint { field: ENVIRONMENT, message }];
        return form(&web, &at, StatusCode::UNPROCESSABLE_ENTITY, &sent, chance::secret_text(), &missing).await;
    };
    let caller = at.insider.enter(&web.core, environment)?;
    let create = CreateRequest {
        capture: options::request(&sent),
        class: Class::Async,
        idempotency_key: Some(sent.one(ONCE).to_owned()),
    };
    match grabs::create(&web.core, caller, &create).await {
        Ok(Answer { grab, .. }) => Ok(see_other(&at.grab_path(grab.id, ""))),
        Err(fault) => {
            let complaint = options::complaint(fault)?;
            // A form that is sent anew is a new one: what this one stands for may have been made already.
            form(&web, &at, StatusCode::UNPROCESSABLE_ENTITY, &sent, chance::secret_text(), &[complaint]).await
        }
    }
}

fn chosen(sent: &Form) -> Option<Environment> {
    ENVIRONMENTS.into_iter().find(|environment| environment.as_str() == sent.one(ENVIRONMENT))
}

async fn form(
    web: &Web,
    at: &AtTeam,
    status: StatusCode,
    sent: &Form,
    once: String,
    errors: &[Complaint],
) -> Result<Response, Problem> {
    let teams = accounts::list_memberships(&web.core, at.insider.person).await?;
    let here = teams.into_iter().find(|membership| membership.team == at.insider.team);
    let live_credits = here.map_or(0, |membership| membership.live_credits);
    let preselected = if live_credits > 0 { Environment::Live } else { Environment::Test };
    let chosen = chosen(sent).unwrap_or(preselected);
    let choice = |environment: Environment| Choice {
        value: environment.as_str(),
        name: environment_name(environment),
        about: about(environment, live_credits),
        is_chosen: environment == chosen,
    };
    let template = CapturePage {
        frame: web.team_frame(at, "capture"),
        form_token: at.form_token(),
        action: at.path("capture"),
        once,
        options: Options::of(sent, errors),
        environments: ENVIRONMENTS.map(choice).into(),
        errors,
    };
    Ok(page(status, &template))
}

fn about(environment: Environment, live_credits: u32) -> String {
    match (environment, live_credits) {
        (Environment::Live, 0) => "The page itself. The team has no credits for it.".to_owned(),
        (Environment::Live, 1) => "The page itself, for the team’s last credit.".to_owned(),
        (Environment::Live, left) => {
            format!("The page itself. One of {} credits when it succeeds.", grouped(left.into()))
        }
        (Environment::Test, _) => "A placeholder of the same size. Free; the page is not visited.".to_owned(),
    }
}
