//! `/teams/{team}/capture`: the form for a new capture, and the code that makes the same capture through the API.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use grabd_domain::capture::CaptureSpec;
use grabd_domain::credentials::Environment;
use grabd_domain::grabs::{Class, Grab};
use grabd_engine::grabs::{self, CreateRequest, CreateResult};
use grabd_engine::{accounts, random};
use http::StatusCode;

use super::options::{self, Input, Options};
use super::result::{self, PART_FIELD, RESULT};
use super::snippets::{self, Snippet};
use crate::environments::{ENVIRONMENT, ENVIRONMENTS};
use crate::extract::{QueryForm, TeamForm, TeamPage};
use crate::form::{FieldError, Form};
use crate::number::grouped;
use crate::page::{CspOptions, Layout, page, page_with};
use crate::problem::Problem;
use crate::response::see_other;
use crate::state::Web;
use crate::team::TeamContext;

/// The field with the idempotency key: a form that is sent twice makes one capture.
pub(crate) const IDEMPOTENCY_FIELD: &str = "once";

#[derive(Template)]
#[template(path = "capture.html")]
struct CapturePage<'a> {
    layout: Layout,
    form_token: &'a str,
    action: String,
    once: String,
    options: Options,
    presets: Vec<Preset>,
    /// Options of an earlier capture that are no longer kept.
    omitted: String,
    is_test: bool,
    /// What the two modes do and cost.
    about: String,
    environment_error: Option<&'a str>,
    errors: &'a [FieldError],
    code: Code,
    code_action: String,
}

/// The code alone, with which the page's script replaces the former one.
#[derive(Template)]
#[template(path = "capture_code.html")]
struct CodePart {
    code: Code,
}

/// Programs that make the capture of the form, or why there are none.
struct Code {
    snippets: Result<Vec<Snippet>, String>,
    key: &'static str,
    /// Whether options were left out because they are secret.
    hides_secrets: bool,
}

/// A link that fills in the form for a common purpose.
struct Preset {
    name: &'static str,
    path: String,
}

/// The names of presets, and their options as a query. The script of the page sets all options that one of them names.
const PRESETS: [(&str, &str); 7] = [
    ("Desktop", "width=1440&height=900"),
    ("Laptop", "width=1280&height=800"),
    ("Tablet", "device=tablet"),
    ("Phone", "device=phone"),
    ("Social card", "width=1200&height=630"),
    ("Full page", "full_page=true"),
    ("Retina", "scale=2"),
];
/// The URL in the code while the form has none.
const EXAMPLE_URL: &str = "https://example.com/";
/// The field of the switch. A browser sends it only if the switch is on.
const TEST_MODE: &str = "test_mode";

/// Shows the form, prefilled from the query.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    TeamPage(at): TeamPage,
    QueryForm(query): QueryForm,
) -> Result<Response, Problem> {
    form(&web, &at, StatusCode::OK, &query, random::secret_text(), &[]).await
}

/// Creates the capture and redirects to its page, which shows the status. With `part=result` the answer is the result's
/// pane.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    TeamForm { at, form: input }: TeamForm,
) -> Result<Response, Problem> {
    let is_part = input.get(PART_FIELD) == RESULT;
    match create(&web, &at, &input).await? {
        Ok(grab) if is_part => Ok(result::accepted(&web, &at, &grab, random::secret_text())),
        Ok(grab) => Ok(see_other(&at.grab_path(grab.id, ""))),
        // The form has a new idempotency key, because a capture with the old one may exist.
        Err(error) if is_part => Ok(result::refused(&[error], random::secret_text())),
        Err(error) => form(&web, &at, StatusCode::UNPROCESSABLE_ENTITY, &input, random::secret_text(), &[error]).await,
    }
}

/// Creates the capture of a form. The inner error is shown at its field.
async fn create(web: &Web, at: &TeamContext, input: &Form) -> Result<Result<Grab, FieldError>, Problem> {
    let Some(environment) = chosen(input) else {
        let message = "Choose a mode: live or test.".to_owned();
        return Ok(Err(FieldError { field: ENVIRONMENT, message }));
    };
    let caller = at.team_member.admit(&web.core, environment).await?;
    let create = CreateRequest {
        capture: options::request(input),
        class: Class::Async,
        idempotency_key: Some(input.get(IDEMPOTENCY_FIELD).to_owned()),
        may_read: true,
        is_link: false,
    };
    match grabs::create(&web.core, caller, &create).await {
        Ok(CreateResult { grab, .. }) => Ok(Ok(grab)),
        Err(error) => Ok(Err(options::field_error(error.into_fault())?)),
    }
}

/// Shows the code for the options of the form, without a capture: the whole page, or the code alone.
pub(crate) async fn code(
    State(web): State<Arc<Web>>,
    TeamForm { at, form: input }: TeamForm,
) -> Result<Response, Problem> {
    if input.get(PART_FIELD) == "code" {
        return Ok(page(StatusCode::OK, &CodePart { code: Code::of(&web, &input) }));
    }
    form(&web, &at, StatusCode::OK, &input, random::secret_text(), &[]).await
}

impl Code {
    fn of(web: &Web, input: &Form) -> Self {
        let mut request = options::request(input);
        request.url.get_or_insert_with(|| EXAMPLE_URL.to_owned());
        let spec = CaptureSpec::parse(&request).map_err(|fault| match options::field_error(fault) {
            Ok(error) => error.message,
            Err(_) => "These options cannot be combined.".to_owned(),
        });
        Self {
            key: match chosen(input) {
                Some(Environment::Test) => "a test key",
                Some(Environment::Live) | None => "a live key",
            },
            hides_secrets: options::has_secrets(input),
            snippets: spec.map(|spec| snippets::all(web.core.public_url(), &spec)),
        }
    }
}

/// The environment that a form or link selects: the switch, if it is on, otherwise the field.
fn chosen(input: &Form) -> Option<Environment> {
    if input.get(TEST_MODE) == "true" {
        return Some(Environment::Test);
    }
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
    let teams = accounts::list_memberships(&web.core, at.team_member.user).await?;
    let here = teams.into_iter().find(|membership| membership.team == at.team_member.team);
    let live_credits = here.map_or(0, |membership| membership.live_credits);
    let preselected = if live_credits > 0 { Environment::Live } else { Environment::Test };
    let chosen = chosen(input).unwrap_or(preselected);
    let environment_error = errors.iter().find(|error| error.field == ENVIRONMENT).map(|error| &*error.message);
    let template = CapturePage {
        layout: Layout { script: Some(web.assets.capture.path.clone()), ..web.team_layout(at, "capture") },
        form_token: at.form_token(),
        action: at.path("capture"),
        once,
        options: Options::of(input, errors),
        presets: PRESETS.map(|(name, query)| Preset { name, path: format!("{}?{query}", at.path("capture")) }).into(),
        omitted: options::omitted_labels(input).join(", "),
        is_test: chosen == Environment::Test,
        about: about(live_credits),
        environment_error,
        errors,
        code: Code::of(web, input),
        code_action: at.path("capture/code"),
    };
    Ok(page_with(CspOptions { connects: true, ..CspOptions::default() }, status, &template))
}

/// The hint of the switch.
fn about(live_credits: u32) -> String {
    let cost = match live_credits {
        0 => "The team has no credits for live captures.".to_owned(),
        1 => "Off: costs the last credit if it succeeds.".to_owned(),
        left => format!("Off: costs 1 of {} credits if it succeeds.", grouped(left.into())),
    };
    format!("{cost} On: a free placeholder image, without opening the page.")
}
