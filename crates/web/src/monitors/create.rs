//! `/teams/{team}/monitors/new`: creates a monitor, also with the options of an existing capture, or one for each of several pages.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use grabd_domain::Fault;
use grabd_domain::credentials::{Caller, Environment};
use grabd_engine::{Error, monitors};
use http::StatusCode;

use super::fields::{self, DEFAULTS};
use super::form_page::{OtherForm, Purpose, form_page};
use super::{CREATED, PAGE, several};
use crate::environments::{ENVIRONMENT, chosen_environment};
use crate::extract::{QueryForm, TeamForm, TeamPage};
use crate::form::{FieldError, Form};
use crate::grabs::options::omitted_labels;
use crate::problem::Problem;
use crate::response::see_other;
use crate::state::Web;
use crate::team::TeamContext;

/// The field of the query that asks for the form for several pages.
const SEVERAL: &str = "several";

/// Which of the two forms is shown.
struct Variant {
    /// Whether it is that for several pages.
    is_several: bool,
    /// The query of the link to the other form.
    query: String,
}

/// Shows the form, prefilled with the options in the query.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    TeamPage(at): TeamPage,
    QueryForm(query): QueryForm,
) -> Result<Response, Problem> {
    let given = query.fields().iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let options: Form = given.clone().filter(|(name, _)| *name != SEVERAL).collect();
    let variant = Variant { is_several: query.has(SEVERAL), query: options.to_query() };
    let defaults = DEFAULTS.into_iter().filter(|(name, _)| !query.has(name));
    Ok(form(&web, &at, StatusCode::OK, &variant, &defaults.chain(given).collect(), &[]))
}

/// Creates the monitors and redirects to their page.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    TeamForm { at, form: input }: TeamForm,
) -> Result<Response, Problem> {
    let error = match (chosen_environment(&input), fields::comparison_error(&input)) {
        (None, _) => FieldError { field: ENVIRONMENT, message: "Choose an environment.".to_owned() },
        (Some(_), Some(error)) => error,
        (Some(environment), None) => {
            let caller = at.team_member.admit(&web.core, environment).await?;
            match create(&web, &at, caller, &input).await {
                Ok(path) => return Ok(see_other(&path)),
                Err(fault) => several::field_error(fault)?,
            }
        }
    };
    let variant = Variant { is_several: several::is_for(&input), query: String::new() };
    Ok(form(&web, &at, StatusCode::UNPROCESSABLE_ENTITY, &variant, &input, &[error]))
}

/// Creates the monitors that a form describes. Returns the path of the page that shows them.
async fn create(web: &Web, at: &TeamContext, caller: Caller, input: &Form) -> Result<String, Fault> {
    if several::is_for(input) {
        let request = several::request(input);
        let created = monitors::create_batch(&web.core, caller, &request).await.map_err(Error::into_fault)?.monitors;
        return Ok(format!("{}?{CREATED}={}", at.path(PAGE), created.len()));
    }
    let monitor = monitors::create(&web.core, caller, &fields::request(input)).await.map_err(Error::into_fault)?;
    Ok(format!("{}?created", at.monitor_path(monitor.id, "")))
}

fn form(
    web: &Web,
    at: &TeamContext,
    status: StatusCode,
    variant: &Variant,
    input: &Form,
    errors: &[FieldError],
) -> Response {
    let Variant { is_several, query } = variant;
    let action = at.path("monitors/new");
    let separator = |sign: &'static str| if query.is_empty() { "" } else { sign };
    let (title, button, other) = match *is_several {
        true => {
            let other = OtherForm { path: format!("{action}{}{query}", separator("?")), text: "One page" };
            ("New monitors", "Create monitors", other)
        }
        false => {
            let path = format!("{action}?{SEVERAL}{}{query}", separator("&"));
            ("New monitor", "Create monitor", OtherForm { path, text: "Several pages with the same settings" })
        }
    };
    let purpose = Purpose {
        title,
        button,
        action,
        back: at.path(PAGE),
        environment: Some(chosen_environment(input).unwrap_or(Environment::Live)),
        has_options: true,
        omitted: omitted_labels(input).join(", "),
        is_several: *is_several,
        other: Some(other),
    };
    form_page(web, at, status, purpose, input, errors)
}
