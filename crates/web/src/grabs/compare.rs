//! `/teams/{team}/grabs/compare`: two images side by side, or one over the other.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use grabd_domain::grabs::Grab;
use http::StatusCode;

use super::selection;
use super::view::{ImageState, ImageView, View};
use crate::extract::{QueryForm, TeamPage};
use crate::page::{Layout, page};
use crate::problem::Problem;
use crate::state::Web;
use crate::team::TeamContext;

#[derive(Template)]
#[template(path = "compare.html")]
struct ComparePage {
    layout: Layout,
    /// The older capture, then the newer one.
    sides: [Side; 2],
    back: String,
}

/// One of the captures.
struct Side {
    /// `Before` or `After`.
    label: &'static str,
    view: View,
    image: ImageView,
}

/// Shows the two selected captures, the older one first.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    TeamPage(at): TeamPage,
    QueryForm(query): QueryForm,
) -> Result<Response, Problem> {
    let mut selected = selection::find(&web, &at, &query).await?;
    selected.sort_by_key(|grab| (grab.created_at, grab.id));
    let [before, after] = &selected[..] else {
        let message = format!("{} captures were selected.", selected.len());
        return Err(Problem::bad_request("Select two captures", message, "Go back and select exactly two."));
    };
    let template = ComparePage {
        layout: Layout { script: Some(web.assets.compare.path.clone()), ..web.team_layout(&at, "grabs") },
        sides: [side("Before", before, &at)?, side("After", after, &at)?],
        back: at.path("grabs"),
    };
    Ok(page(StatusCode::OK, &template))
}

/// # Errors
/// When the capture has no image.
fn side(label: &'static str, grab: &Grab, at: &TeamContext) -> Result<Side, Problem> {
    let mut view = View::of(grab, at);
    match std::mem::replace(&mut view.image, ImageState::Deleted) {
        ImageState::Available(image) => Ok(Side { label, view, image }),
        ImageState::Open | ImageState::Deleted | ImageState::Failed { .. } => Err(Problem::bad_request(
            "No image to compare",
            format!("The capture of {} has no image.", view.title),
            "Go back and select two captures with an image.",
        )),
    }
}
