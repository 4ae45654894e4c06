//! `/teams/{team}/grabs/delete`: deletes the images that are selected in the gallery, after a confirmation.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use grabd_domain::credentials::Environment;
use grabd_engine::grabs;
use http::StatusCode;

use super::selection;
use super::view::View;
use crate::extract::{QueryForm, TeamForm, TeamPage};
use crate::page::{Layout, page};
use crate::problem::Problem;
use crate::response::see_other;
use crate::state::Web;

#[derive(Template)]
#[template(path = "grabs_delete.html")]
struct DeletePage<'a> {
    layout: Layout,
    form_token: &'a str,
    action: String,
    /// The captures that have an image.
    views: Vec<View>,
    /// How many of the selected captures have none.
    without_image: usize,
    has_live: bool,
    back: String,
}

/// Asks for confirmation.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    TeamPage(at): TeamPage,
    QueryForm(query): QueryForm,
) -> Result<Response, Problem> {
    let selected = selection::find(&web, &at, &query).await?;
    let has_image = |view: &View| view.has_image();
    let views: Vec<View> = selected.iter().map(|grab| View::of(grab, &at)).filter(has_image).collect();
    if views.is_empty() {
        let message = "None of the selected captures has an image.";
        return Err(Problem::bad_request("Nothing to delete", message, "Go back and select captures with an image."));
    }
    let is_live = |grab: &grabd_domain::grabs::Grab| grab.environment == Environment::Live;
    let template = DeletePage {
        layout: web.team_layout(&at, "grabs"),
        form_token: at.form_token(),
        action: at.path("grabs/delete"),
        without_image: selected.len() - views.len(),
        has_live: selected.iter().any(is_live),
        views,
        back: at.path("grabs"),
    };
    Ok(page(StatusCode::OK, &template))
}

/// Deletes the images.
pub(crate) async fn submit(State(web): State<Arc<Web>>, TeamForm { at, form }: TeamForm) -> Result<Response, Problem> {
    let selected = selection::find(&web, &at, &form).await?;
    for grab in &selected {
        let caller = at.team_member.uncounted_caller(grab.environment);
        grabs::delete(&web.core, caller, grab.id).await?;
    }
    let environment = selected.first().map_or(Environment::Live, |grab| grab.environment);
    Ok(see_other(&format!("{}?environment={}&deleted={}", at.path("grabs"), environment.as_str(), selected.len())))
}
