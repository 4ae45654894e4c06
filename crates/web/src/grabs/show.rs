//! `/teams/{team}/grabs/{grab}`: a grab with its image, request, outcome, and programs that repeat it.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use grabd_domain::credentials::Environment;
use grabd_domain::grabs::{Grab, Stages};
use grabd_engine::grabs;
use http::StatusCode;

use super::snippets::{self, Snippet};
use super::stages::{self, StageView};
use super::view::{self, Detail, ImageState, View};
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
    parts: GrabParts,
    request: Vec<Detail>,
    /// Options that are no longer kept, which the snippets lack.
    omitted: String,
    snippets: Vec<Snippet>,
    /// Path of the script that shows snippets as tabs.
    code_script: String,
    key: &'static str,
    list: String,
}

/// The parts of the page that change while it is open.
#[derive(Template)]
#[template(path = "grab_parts.html")]
pub(super) struct GrabParts {
    view: View,
    outcome: Vec<Detail>,
    stages: Vec<StageView>,
}

impl GrabParts {
    pub(super) fn of(grab: &Grab, stages: &Stages, at: &TeamContext) -> Self {
        Self { view: View::of(grab, at), outcome: view::outcome(grab), stages: stages::all(stages) }
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
    let is_open = !grab.status().is_terminal();
    let layout = web.team_layout(&at, "grabs");
    let template = GrabPage {
        layout: Layout { script: is_open.then(|| web.assets.script.path.clone()), ..layout },
        is_deleted: query.has("deleted") && grab.deleted_at.is_some(),
        request: view::request(&grab),
        omitted: view::omitted_labels(&grab).join(", "),
        snippets: snippets::all(web.core.public_url(), &grab.spec),
        code_script: web.assets.docs.path.clone(),
        key: match grab.environment {
            Environment::Live => "a live key",
            Environment::Test => "a test key",
        },
        list: format!("{}?environment={}", at.path("grabs"), grab.environment.as_str()),
        parts: GrabParts::of(&grab, &grabs::stages(&web.core, &grab), &at),
    };
    Ok(page_with(CspOptions { connects: is_open, ..CspOptions::default() }, StatusCode::OK, &template))
}
