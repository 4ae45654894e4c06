//! The form for new and existing monitors.

use askama::Template;
use axum::response::Response;
use grabd_domain::credentials::Environment;
use http::StatusCode;

use super::fields::Fields;
use super::several;
use crate::environments::{ENVIRONMENT, ENVIRONMENTS, environment_name};
use crate::form::{FieldError, Form};
use crate::grabs::options::{Input, Options, Text};
use crate::grabs::unavailable::unavailable_options;
use crate::page::{Layout, page};
use crate::state::Web;
use crate::team::TeamContext;

#[derive(Template)]
#[template(path = "monitor_form.html")]
struct FormPage<'a> {
    layout: Layout,
    form_token: &'a str,
    title: &'static str,
    action: String,
    back: String,
    /// The link to the form for another number of pages.
    other: Option<OtherForm>,
    /// The field for several pages. `None`: that of the options is for one.
    urls: Option<Text>,
    fields: Fields,
    /// The options of the capture. `None` if they cannot be changed in a form.
    options: Option<Options>,
    /// The environments to choose from. Empty for an existing monitor.
    environments: Vec<EnvironmentChoice>,
    environment_error: Option<String>,
    /// Options of an earlier capture that are no longer kept.
    omitted: String,
    button: &'static str,
    errors: &'a [FieldError],
}

/// An environment option.
struct EnvironmentChoice {
    value: &'static str,
    name: &'static str,
    about: &'static str,
    is_chosen: bool,
}

/// A link to another form.
pub(super) struct OtherForm {
    pub(super) path: String,
    pub(super) text: &'static str,
}

/// What the form is for.
pub(super) struct Purpose {
    pub(super) title: &'static str,
    pub(super) button: &'static str,
    pub(super) action: String,
    pub(super) back: String,
    /// The environment of a new monitor.
    pub(super) environment: Option<Environment>,
    /// Whether the options of the capture can be changed.
    pub(super) has_options: bool,
    /// Options of an earlier capture that are no longer kept.
    pub(super) omitted: String,
    /// Whether it is for several pages.
    pub(super) is_several: bool,
    /// The link to the form for another number of pages.
    pub(super) other: Option<OtherForm>,
}

/// Renders the form.
pub(super) fn form_page(
    web: &Web,
    at: &TeamContext,
    status: StatusCode,
    purpose: Purpose,
    input: &Form,
    errors: &[FieldError],
) -> Response {
    let Purpose { title, button, action, back, environment, has_options, omitted, is_several, other } = purpose;
    let mut fields = Fields::of(input, errors);
    if is_several {
        several::NAME_HINT.clone_into(&mut fields.name.hint);
    }
    let own = errors.iter().find(|field_error| field_error.field == ENVIRONMENT);
    let template = FormPage {
        layout: web.monitor_layout(at),
        form_token: at.form_token(),
        title,
        action,
        back,
        other,
        urls: is_several.then(|| several::field(input, errors)),
        fields,
        options: has_options.then(|| Options::of_repeated(input, errors, &unavailable_options(web))),
        environments: environment.map(environments).unwrap_or_default(),
        environment_error: own.map(|field_error| field_error.message.clone()),
        omitted,
        button,
        errors,
    };
    page(status, &template)
}

fn environments(chosen: Environment) -> Vec<EnvironmentChoice> {
    let choice = |environment: Environment| EnvironmentChoice {
        value: environment.as_str(),
        name: environment_name(environment),
        about: match environment {
            Environment::Live => "Captures the page. Each capture costs 1 credit if it succeeds.",
            Environment::Test => "Free placeholders, without opening the page.",
        },
        is_chosen: environment == chosen,
    };
    ENVIRONMENTS.map(choice).into()
}
