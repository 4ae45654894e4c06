//! `/teams/{team}/grabs/{grab}`: a grab with its image, request, outcome, and programs that repeat it.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use grabd_domain::credentials::Environment;
use grabd_domain::grabs::{Grab, Stages, State as GrabState};
use grabd_engine::grab_json;
use grabd_engine::grabs::{self, GrabCreator};
use http::StatusCode;

use super::retake_form::{Refusal, RetakeForm};
use super::snippets::{self, Snippet};
use super::stages::{self, StageView};
use super::view::{self, Detail, Identifier, ImageState, View};
use crate::extract::{QueryForm, TeamPage};
use crate::page::{CspOptions, Layout, page_with};
use crate::problem::Problem;
use crate::state::Web;
use crate::team::TeamContext;

#[derive(Template)]
#[template(path = "grab.html")]
struct GrabPage {
    layout: Layout,
    is_deleted: bool,
    /// Why the page was not captured again, if that was requested.
    refusal: Option<Refusal>,
    parts: GrabParts,
    creator: GrabCreator,
    /// Options that are no longer kept, which the snippets lack.
    omitted: String,
    snippets: Vec<Snippet>,
    /// Path of the script that shows snippets as tabs.
    code_script: String,
    key: &'static str,
    list: String,
}

/// The parts of the page that change while it is open, as an update.
#[derive(Template)]
#[template(path = "grab_parts.html")]
pub(super) struct ChangedParts {
    parts: GrabParts,
}

/// The parts of the page that change while it is open.
struct GrabParts {
    view: View,
    /// The outcome, then the request.
    details: Vec<Detail>,
    identifiers: Vec<Identifier>,
    /// What the capture costs.
    cost: &'static str,
    stages: Vec<StageView>,
    retake: RetakeForm,
    /// The grab as the API returns it.
    json: String,
}

impl ChangedParts {
    pub(super) fn of(grab: &Grab, stages: &Stages, at: &TeamContext) -> Self {
        Self { parts: GrabParts::of(grab, stages, at) }
    }
}

impl GrabParts {
    fn of(grab: &Grab, stages: &Stages, at: &TeamContext) -> Self {
        let mut details = view::outcome(grab);
        details.extend(view::request(grab));
        Self {
            view: View::of(grab, at),
            details,
            identifiers: view::identifiers(grab),
            cost: cost(grab),
            stages: stages::all(stages),
            retake: RetakeForm::of(grab, at),
            json: grab_json(grab, &at.public_url),
        }
    }
}

/// What a grab costs.
const fn cost(grab: &Grab) -> &'static str {
    match (grab.environment, &grab.state) {
        (Environment::Test, _) => "free",
        (Environment::Live, GrabState::Pending | GrabState::Processing) => "1 credit if it succeeds",
        (Environment::Live, GrabState::Done { .. }) => "1 credit",
        (Environment::Live, GrabState::Failed { .. }) => "not charged",
    }
}

/// Shows the page. While the grab is open, the page updates itself by script or by reloading.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    TeamPage(at): TeamPage,
    Path((_, grab)): Path<(String, String)>,
    QueryForm(query): QueryForm,
) -> Result<Response, Problem> {
    let (grab, _) = at.find_grab_counted(&web, &grab).await?;
    let is_deleted = query.has("deleted") && grab.deleted_at.is_some();
    let (csp, page) = grab_page(&web, &at, &grab).await?;
    Ok(page_with(csp, StatusCode::OK, &GrabPage { is_deleted, ..page }))
}

/// Shows the page with the reason why the page was not captured again.
///
/// # Errors
/// When the database fails.
pub(super) async fn refused(
    web: &Web,
    at: &TeamContext,
    grab: &Grab,
    status: StatusCode,
    refusal: Refusal,
) -> Result<Response, Problem> {
    let (csp, page) = grab_page(web, at, grab).await?;
    Ok(page_with(csp, status, &GrabPage { refusal: Some(refusal), ..page }))
}

async fn grab_page(web: &Web, at: &TeamContext, grab: &Grab) -> Result<(CspOptions<'static>, GrabPage), Problem> {
    let is_open = !grab.status().is_terminal();
    let caller = at.team_member.uncounted_caller(grab.environment);
    let template = GrabPage {
        layout: Layout { script: is_open.then(|| web.assets.script.path.clone()), ..web.team_layout(at, "grabs") },
        is_deleted: false,
        refusal: None,
        creator: grabs::creator(&web.core, caller, grab.id).await?,
        omitted: view::omitted_labels(grab).join(", "),
        snippets: snippets::all(web.core.public_url(), &grab.spec),
        code_script: web.assets.docs.path.clone(),
        key: match grab.environment {
            Environment::Live => "a live key",
            Environment::Test => "a test key",
        },
        list: format!("{}?environment={}", at.path("grabs"), grab.environment.as_str()),
        parts: GrabParts::of(grab, &grabs::stages(&web.core, grab), at),
    };
    Ok((CspOptions { connects: is_open, ..CspOptions::default() }, template))
}
