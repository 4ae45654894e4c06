//! `/teams/{team}/grabs/compare`: what changed between two images, which are side by side, or one over the other.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use grabd_domain::grabs::{Difference, Grab, Region};
use grabd_domain::ids::MonitorId;
use grabd_domain::permissions::Permission;
use grabd_engine::grabs::{self, CompareError};
use http::StatusCode;

use super::selection;
use super::view::{ImageState, ImageView, View, capitalized};
use crate::extract::{QueryForm, TeamPage};
use crate::page::{Layout, page};
use crate::problem::Problem;
use crate::state::Web;
use crate::team::TeamContext;

/// The query parameter with the id of the monitor whose run made the newer capture.
pub(crate) const MONITOR: &str = "monitor";

#[derive(Template)]
#[template(path = "compare.html")]
struct ComparePage<'a> {
    layout: Layout,
    /// The older capture, then the newer one.
    sides: [Side; 2],
    changes: Changes,
    /// The path of the image that shows the difference, if the newer capture was made with a comparison with the older one.
    difference: Option<String>,
    /// The path of the page with both captures, and its name.
    back: (String, &'static str),
    accept: Option<AcceptForm<'a>>,
}

/// The button that makes the newer capture the one that a monitor compares later ones with.
struct AcceptForm<'a> {
    action: String,
    form_token: &'a str,
}

/// What changed from the older to the newer image.
struct Changes {
    /// A sentence.
    summary: String,
    /// The size of the newer image in pixels, in which the regions are.
    size: (u32, u32),
    /// Largest first.
    regions: Vec<Region>,
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
    let sides = [side("Before", before, &at)?, side("After", after, &at)?];
    let size = (sides[1].image.width, sides[1].image.height);
    let monitor = query.get(MONITOR).parse::<MonitorId>().ok().map(|monitor| at.path(&format!("monitors/{monitor}")));
    let accept = monitor.as_ref().filter(|_| at.may(Permission::Capture));
    let template = ComparePage {
        layout: Layout { script: Some(web.assets.compare.path.clone()), ..web.team_layout(&at, "grabs") },
        changes: Changes::of(grabs::compare_existing(&web.core, before, after).await, size)?,
        difference: difference_image(&sides),
        sides,
        accept: accept.map(|monitor| AcceptForm { action: format!("{monitor}/accept"), form_token: at.form_token() }),
        back: monitor.map_or_else(|| (at.path("grabs"), "Captures"), |monitor| (monitor, "Monitor")),
    };
    Ok(page(StatusCode::OK, &template))
}

impl Changes {
    /// # Errors
    /// When the comparison failed inside. Images that cannot be compared now are shown without figures.
    fn of(compared: Result<Difference, CompareError>, size: (u32, u32)) -> Result<Self, Problem> {
        let without = |why: &str| Ok(Self { summary: why.to_owned(), size, regions: Vec::new() });
        match compared {
            Ok(difference) => {
                let summary = format!("{}.", capitalized(&difference.summary()));
                Ok(Self { summary, size, regions: difference.regions })
            }
            Err(CompareError::NoImage) => without("What changed is not known, because an image was deleted."),
            Err(CompareError::TooLarge) => without("What changed is not known, because the images are too large."),
            Err(CompareError::Busy) => {
                without("What changed is not known yet, because other images are being processed. Reload the page.")
            }
            Err(CompareError::Internal(error)) => Err(error.into()),
        }
    }
}

/// The image that was made with the newer capture, if it shows the difference to the older one.
fn difference_image([before, after]: &[Side; 2]) -> Option<String> {
    let difference = after.image.difference.as_ref()?;
    difference.path.clone().filter(|_| difference.earlier == before.view.path)
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

#[cfg(test)]
mod tests {
    use grabd_domain::ids::GrabId;

    use super::*;

    #[test]
    fn summary_is_a_sentence_with_or_without_figures() {
        let compared_to: GrabId = "01993e1c-7b1a-7000-8000-0123456789ab".parse().unwrap();
        let region = Region { x: 1, y: 2, width: 3, height: 4 };
        let of = |changed_ppm, regions| Difference { compared_to, changed_ppm, regions };
        let summary_of =
            |compared| Changes::of(compared, (800, 600)).map(|changes| (changes.summary, changes.regions.len()));
        assert_eq!(summary_of(Ok(of(38_000, vec![region; 6]))).unwrap(), ("3.8 % changed in 6 regions.".to_owned(), 6));
        assert_eq!(summary_of(Ok(of(0, Vec::new()))).unwrap(), ("Nothing changed.".to_owned(), 0));
        let (busy, regions) = summary_of(Err(CompareError::Busy)).unwrap();
        assert!(busy.contains("Reload") && regions == 0, "{busy}");
    }
}
