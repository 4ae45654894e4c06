//! `/teams/{team}/grabs/{grab}/retake`: captures the page again with the same options, and compares it with this capture.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use grabd_domain::Fault;
use grabd_domain::capture::Tolerance;
use grabd_domain::grabs::{Class, Grab};
use grabd_engine::grabs::{self, CreateRequest, CreateResult};
use http::StatusCode;

use super::capture::IDEMPOTENCY_FIELD;
use super::no_credits::NoCredits;
use super::retake_form::{Refusal, RetakeForm, same_options};
use super::{options, show};
use crate::extract::TeamForm;
use crate::form::Form;
use crate::problem::Problem;
use crate::response::see_other;
use crate::state::Web;
use crate::team::TeamContext;

/// Creates the capture and redirects to its page, which shows the difference. If options of the earlier capture are no
/// longer kept, redirects to the form that has the others.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    Path((_, grab)): Path<(String, String)>,
    TeamForm { at, form }: TeamForm,
) -> Result<Response, Problem> {
    let (earlier, _) = at.find_grab_counted(&web, &grab).await?;
    let Some(input) = same_options(&earlier) else {
        return Ok(see_other(&RetakeForm::of(&earlier, &at).edit));
    };
    match create(&web, &at, &earlier, &input, form.get(IDEMPOTENCY_FIELD)).await? {
        Ok(grab) => Ok(see_other(&at.grab_path(grab.id, ""))),
        Err(refusal) => show::refused(&web, &at, &earlier, StatusCode::UNPROCESSABLE_ENTITY, refusal).await,
    }
}

/// The inner error is shown on the page of the earlier capture.
async fn create(
    web: &Web,
    at: &TeamContext,
    earlier: &Grab,
    input: &Form,
    once: &str,
) -> Result<Result<Grab, Refusal>, Problem> {
    let create = CreateRequest {
        capture: options::request(input),
        tolerance: Tolerance::default(),
        class: Class::Async,
        idempotency_key: Some(once.to_owned()),
        may_read: true,
        is_link: false,
    };
    let caller = at.team_member.uncounted_caller(earlier.environment);
    let fault = match grabs::create(&web.core, caller, &create).await {
        Ok(CreateResult { grab, .. }) => return Ok(Ok(grab)),
        Err(error) => error.into_fault(),
    };
    Ok(Err(if fault == Fault::CreditsExhausted {
        Refusal::NoCredits(NoCredits::of(web, at))
    } else {
        Refusal::Other(options::field_error(fault)?.message)
    }))
}
