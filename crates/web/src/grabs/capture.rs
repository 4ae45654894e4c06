//! `/teams/{team}/capture`: the form for a new capture, and the code that makes the same capture through the API.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use grabd_domain::Fault;
use grabd_domain::capture::Tolerance;
use grabd_domain::credentials::Environment;
use grabd_domain::grabs::{Class, Grab};
use grabd_engine::grabs::{self, CreateRequest, CreateResult};
use grabd_engine::{accounts, random};
use http::StatusCode;

use super::no_credits::NoCredits;
use super::options::{self, Input, Options};
use super::result::{self, PART_FIELD, RESULT, Refusal};
use super::snippets::{self, Snippet};
use super::unavailable::unavailable_options;
use crate::environments::{ENVIRONMENT, chosen_environment};
use crate::extract::{QueryForm, TeamForm, TeamPage};
use crate::form::{FieldError, Form};
use crate::number::grouped;
use crate::page::{CspOptions, Layout, page, page_with};
use crate::paths::VERIFIED;
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
    /// What happened before. Empty if there is nothing to say.
    notice: String,
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
    /// Set if the capture was refused for a lack of credits.
    no_credits: Option<NoCredits>,
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

/// The credits that are left, with which the page's script replaces the former number.
#[derive(Template)]
#[template(path = "capture_balance.html")]
struct BalancePart {
    about: String,
}

/// A button that fills in a common size, and keeps everything else.
struct Preset {
    name: &'static str,
    /// The fields and their values, separated by `=`, and by `&` from each other.
    fields: &'static str,
    is_chosen: bool,
}

/// The names of presets, and the fields of [`SIZE_FIELDS`] that they fill in.
const PRESETS: [(&str, &str); 5] = [
    ("Desktop", "width=1440&height=900"),
    ("Laptop", "width=1280&height=800"),
    ("Tablet", "device=tablet"),
    ("Phone", "device=phone"),
    ("Social card", "width=1200&height=630"),
];
/// The fields that a preset fills in, or clears.
const SIZE_FIELDS: [&str; 3] = ["device", "width", "height"];
/// The field of the button that was pressed.
const PRESET: &str = "preset";
/// The URL in the code while the form has none.
const EXAMPLE_URL: &str = "https://example.com/";
/// The field of the switch. A browser sends it only if the switch is on.
const TEST_MODE: &str = "test_mode";
/// The button that sends the form in test mode, whatever the switch says.
const USE_TEST_MODE: &str = "use_test_mode";
/// The value of [`PART_FIELD`] for the credits that are left.
const BALANCE: &str = "balance";

/// Shows the form, prefilled from the query.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    TeamPage(at): TeamPage,
    QueryForm(query): QueryForm,
) -> Result<Response, Problem> {
    if query.get(PART_FIELD) == BALANCE {
        return Ok(page(StatusCode::OK, &BalancePart { about: about(live_credits(&web, &at).await?) }));
    }
    form(&web, &at, StatusCode::OK, &query, None).await
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
        Err(refusal) if is_part => Ok(result::refused(&web, &at, refusal, random::secret_text())),
        Err(refusal) => form(&web, &at, StatusCode::UNPROCESSABLE_ENTITY, &input, Some(refusal)).await,
    }
}

/// Creates the capture of a form.
async fn create(web: &Web, at: &TeamContext, input: &Form) -> Result<Result<Grab, Refusal>, Problem> {
    let Some(environment) = chosen(input) else {
        let message = "Choose a mode: live or test.".to_owned();
        return Ok(Err(Refusal::Field(FieldError { field: ENVIRONMENT, message })));
    };
    let caller = at.team_member.admit(&web.core, environment).await?;
    let create = CreateRequest {
        capture: options::request(input),
        tolerance: Tolerance::default(),
        class: Class::Async,
        idempotency_key: Some(input.get(IDEMPOTENCY_FIELD).to_owned()),
        may_read: true,
        is_link: false,
    };
    match grabs::create(&web.core, caller, &create).await {
        Ok(CreateResult { grab, .. }) => Ok(Ok(grab)),
        Err(error) => {
            let fault = error.into_fault();
            let has_no_credits = fault == Fault::CreditsExhausted;
            Ok(Err(if has_no_credits { Refusal::NoCredits } else { Refusal::Field(options::field_error(fault)?) }))
        }
    }
}

/// Shows the code for the options of the form, without a capture: the whole page, or the code alone. A preset fills in a
/// size before.
pub(crate) async fn code(
    State(web): State<Arc<Web>>,
    TeamForm { at, form: input }: TeamForm,
) -> Result<Response, Problem> {
    if input.get(PART_FIELD) == "code" {
        return Ok(page(StatusCode::OK, &CodePart { code: Code::of(&web, &input) }));
    }
    form(&web, &at, StatusCode::OK, &with_preset(input), None).await
}

/// The form with the size of the preset whose button was pressed.
fn with_preset(input: Form) -> Form {
    let Some((_, fields)) = PRESETS.into_iter().find(|(name, _)| *name == input.get(PRESET)) else { return input };
    let kept = input.fields().iter().filter(|(name, _)| !SIZE_FIELDS.contains(&&**name) && name != PRESET);
    let size = Form::parse(fields.as_bytes());
    let all = kept.chain(size.fields()).map(|(name, value)| (&**name, &**value));
    all.collect()
}

/// What is used for a field of a form.
fn used<'a>(form: &'a Form, field: &str) -> &'a str {
    let default = || grabd_options::find(field).map_or("", |option| options::effective_default(option, form));
    Some(form.get(field)).filter(|value| !value.is_empty()).unwrap_or_else(default)
}

/// The presets, of which that one is chosen whose size the form has.
fn presets(input: &Form) -> Vec<Preset> {
    let preset = |(name, fields): (&'static str, &'static str)| {
        let size = Form::parse(fields.as_bytes());
        Preset { name, fields, is_chosen: SIZE_FIELDS.iter().all(|field| used(&size, field) == used(input, field)) }
    };
    PRESETS.map(preset).into()
}

impl Code {
    fn of(web: &Web, input: &Form) -> Self {
        let mut request = options::request(input);
        request.url.get_or_insert_with(|| EXAMPLE_URL.to_owned());
        Self {
            key: match chosen(input) {
                Some(Environment::Test) => "a test key",
                Some(Environment::Live) | None => "a live key",
            },
            hides_secrets: options::has_secrets(input),
            snippets: snippets::of_request(web.core.public_url(), &request),
        }
    }
}

/// The environment that a form or link selects: the switch, if it is on, otherwise the field.
fn chosen(input: &Form) -> Option<Environment> {
    if input.get(TEST_MODE) == "true" || input.has(USE_TEST_MODE) {
        return Some(Environment::Test);
    }
    chosen_environment(input)
}

async fn form(
    web: &Web,
    at: &TeamContext,
    status: StatusCode,
    input: &Form,
    refusal: Option<Refusal>,
) -> Result<Response, Problem> {
    let live_credits = live_credits(web, at).await?;
    let preselected = if live_credits > 0 { Environment::Live } else { Environment::Test };
    let chosen = chosen(input).unwrap_or(preselected);
    let (errors, no_credits) = match refusal {
        None => (Vec::new(), None),
        Some(Refusal::Field(error)) => (vec![error], None),
        Some(Refusal::NoCredits) => (Vec::new(), Some(NoCredits::of(web, at))),
    };
    let errors = errors.as_slice();
    let environment_error = errors.iter().find(|error| error.field == ENVIRONMENT).map(|error| &*error.message);
    let template = CapturePage {
        layout: Layout { script: Some(web.assets.capture.path.clone()), ..web.team_layout(at, "capture") },
        form_token: at.form_token(),
        notice: if input.has(VERIFIED) { welcome(live_credits) } else { String::new() },
        action: at.path("capture"),
        once: random::secret_text(),
        options: Options::of(input, errors, &unavailable_options(web)),
        presets: presets(input),
        omitted: options::omitted_labels(input).join(", "),
        is_test: chosen == Environment::Test,
        about: if no_credits.is_some() { ABOUT_TEST_MODE.to_owned() } else { about(live_credits) },
        environment_error,
        no_credits,
        errors,
        code: Code::of(web, input),
        code_action: at.path("capture/code"),
    };
    Ok(page_with(CspOptions { connects: true, ..CspOptions::default() }, status, &template))
}

/// What the switch does when it is on.
const ABOUT_TEST_MODE: &str = "On: a free placeholder image, without opening the page.";

/// What a user reads whose e-mail address was just verified.
fn welcome(live_credits: u32) -> String {
    match live_credits {
        0 => "E-mail address verified.".to_owned(),
        1 => "E-mail address verified. You have 1 credit.".to_owned(),
        left => format!("E-mail address verified. You have {} credits.", grouped(left.into())),
    }
}

/// The credits that the team can spend.
async fn live_credits(web: &Web, at: &TeamContext) -> Result<u32, Problem> {
    let teams = accounts::list_memberships(&web.core, at.team_member.user).await?;
    let here = teams.into_iter().find(|membership| membership.team == at.team_member.team);
    Ok(here.map_or(0, |membership| membership.live_credits))
}

/// The hint of the switch.
fn about(live_credits: u32) -> String {
    let cost = match live_credits {
        0 => "Off: needs credits, which the team does not have.".to_owned(),
        1 => "Off: costs the last credit if it succeeds.".to_owned(),
        left => format!("Off: costs 1 of {} credits if it succeeds.", grouped(left.into())),
    };
    format!("{cost} {ABOUT_TEST_MODE}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(query: &str) -> Form {
        Form::parse(query.as_bytes())
    }

    #[test]
    fn presets_set_the_size_and_keep_everything_else() {
        for (query, expected) in [
            ("url=example.com/a&width=800&preset=Phone&dark=on", "url=example.com/a&dark=on&device=phone"),
            ("url=a&device=phone&preset=Laptop", "url=a&width=1280&height=800"),
            ("url=a&width=9&preset=Unknown", "url=a&width=9&preset=Unknown"),
            ("url=a&width=9", "url=a&width=9"),
        ] {
            assert_eq!(with_preset(form(query)).to_query(), form(expected).to_query(), "{query}");
        }
    }

    #[test]
    fn preset_is_chosen_while_the_form_has_its_size() {
        let chosen = |query: &str| -> Vec<&str> {
            presets(&form(query)).iter().filter(|preset| preset.is_chosen).map(|preset| preset.name).collect()
        };
        assert_eq!(chosen("url=a&device=phone&format=webp"), ["Phone"]);
        assert_eq!(chosen("device=desktop&width=1440&height=900"), ["Desktop"]);
        assert_eq!(chosen("device=phone&width=400"), [""; 0]);
        assert_eq!(chosen(""), [""; 0]);
        for (name, fields) in PRESETS {
            assert!(form(fields).fields().iter().all(|(field, _)| SIZE_FIELDS.contains(&&**field)), "{name}");
        }
    }
}
