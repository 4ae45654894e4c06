//! The result beside the capture form. With scripts, the form is sent without leaving the page: the answer is the result's
//! pane, or the errors of the form, and changes of an open grab follow as events.

use askama::Template;
use axum::response::Response;
use grabd_domain::grabs::{Grab, Stages};
use grabd_engine::{grab_json, grabs};
use http::StatusCode;

use super::no_credits::NoCredits;
use super::stages::{self, StageView};
use super::view::{self, Detail, ImageState, View};
use crate::form::FieldError;
use crate::page::page;
use crate::state::Web;
use crate::team::TeamContext;

/// The field or query parameter with which the script of the form asks for a part of the page.
pub(super) const PART_FIELD: &str = "part";
/// The value of [`PART_FIELD`] for the result.
pub(super) const RESULT: &str = "result";

/// What the pane leaves to the page of the grab.
const ONLY_IN_DETAILS: [&str; 6] = ["Title", "Description", "Language", "Page", "Canonical URL", "Icon"];

/// The parts of the pane that change.
#[derive(Template)]
#[template(path = "result_parts.html")]
pub(super) struct ResultParts {
    view: View,
    outcome: Vec<Detail>,
    stages: Vec<StageView>,
    /// The grab as the API returns it.
    json: String,
}

/// The answer to a form that was accepted.
#[derive(Template)]
#[template(path = "capture_result.html")]
struct Accepted {
    /// The idempotency key of the next capture.
    once: String,
    parts: ResultParts,
}

/// Why no capture was made.
pub(super) enum Refusal {
    /// An error that is shown at its field.
    Field(FieldError),
    /// A live capture needs a credit.
    NoCredits,
}

/// The answer to a form that was refused.
#[derive(Template)]
#[template(path = "capture_errors.html")]
struct Refused {
    once: String,
    error: Option<FieldError>,
    no_credits: Option<NoCredits>,
}

impl ResultParts {
    pub(super) fn of(grab: &Grab, stages: &Stages, at: &TeamContext) -> Self {
        let mut outcome = view::outcome(grab);
        outcome.retain(|detail| !ONLY_IN_DETAILS.contains(&detail.name));
        let json = grab_json(grab, &at.public_url);
        Self { view: View::of(grab, at), outcome, stages: stages::all(stages), json }
    }
}

/// The pane with a new grab, and the idempotency key of the next one.
pub(super) fn accepted(web: &Web, at: &TeamContext, grab: &Grab, once: String) -> Response {
    let parts = ResultParts::of(grab, &grabs::stages(&web.core, grab), at);
    page(StatusCode::OK, &Accepted { once, parts })
}

/// The pane with the reason of the refusal.
pub(super) fn refused(web: &Web, at: &TeamContext, refusal: Refusal, once: String) -> Response {
    let (error, no_credits) = match refusal {
        Refusal::Field(error) => (Some(error), None),
        Refusal::NoCredits => (None, Some(NoCredits::of(web, at))),
    };
    page(StatusCode::UNPROCESSABLE_ENTITY, &Refused { once, error, no_credits })
}
