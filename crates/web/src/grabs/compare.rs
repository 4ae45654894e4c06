//! `/teams/{team}/grabs/compare`: what changed between two images, which are side by side, or one over the other, and between
//! their texts.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use grabd_domain::Fault;
use grabd_domain::grabs::{Difference, Grab, Region};
use grabd_domain::ids::MonitorId;
use grabd_domain::monitor::TextCompare;
use grabd_domain::permissions::Permission;
use grabd_engine::grabs::{self, CompareError, TextComparison};
use grabd_engine::{Error, monitors};
use http::StatusCode;

use super::selection;
use super::view::{ImageState, ImageView, View, capitalized};
use crate::extract::{QueryForm, TeamPage};
use crate::page::{Layout, page};
use crate::problem::Problem;
use crate::state::Web;
use crate::team::TeamContext;
use crate::text_diff::{self, RowView};

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
    /// What changed in the text. `None` if neither capture has one.
    texts: Option<Texts>,
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

/// What changed from the earlier to the later text.
#[derive(Debug, PartialEq, Eq)]
struct Texts {
    /// A sentence.
    summary: String,
    rows: Vec<RowView>,
    /// What is not shown, in a sentence. Empty if everything is.
    not_shown: String,
    /// Whether the monitor has patterns, whose matches are not compared.
    has_patterns: bool,
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
    let monitor = query.get(MONITOR).parse::<MonitorId>().ok();
    let compare = text_compare(&web, &at, after, monitor).await?;
    let has_patterns = !compare.ignore_patterns.is_empty();
    let texts = grabs::compare_texts(&web.core, compare, before, after).await?;
    let monitor = monitor.map(|monitor| at.path(&format!("monitors/{monitor}")));
    let accept = monitor.as_ref().filter(|_| at.may(Permission::Capture));
    let template = ComparePage {
        layout: Layout { script: Some(web.assets.compare.path.clone()), ..web.team_layout(&at, "grabs") },
        changes: Changes::of(grabs::compare_existing(&web.core, before, after).await, size)?,
        difference: difference_image(&sides),
        texts: Texts::of(&texts, has_patterns),
        sides,
        accept: accept.map(|monitor| AcceptForm { action: format!("{monitor}/accept"), form_token: at.form_token() }),
        back: monitor.map_or_else(|| (at.path("grabs"), "Captures"), |monitor| (monitor, "Monitor")),
    };
    Ok(page(StatusCode::OK, &template))
}

/// How the monitor of the page compares texts. Without a monitor, all that they have counts.
async fn text_compare(
    web: &Web,
    at: &TeamContext,
    grab: &Grab,
    monitor: Option<MonitorId>,
) -> Result<TextCompare, Problem> {
    let Some(id) = monitor else { return Ok(TextCompare::default()) };
    let caller = at.team_member.uncounted_caller(grab.environment);
    match monitors::get(&web.core, caller, id).await.map_err(Error::into_fault) {
        Ok(monitor) => Ok(monitor.spec.compare.text.unwrap_or_default()),
        Err(Fault::NotFound { .. }) => Ok(TextCompare::default()),
        Err(fault) => Err(fault.into()),
    }
}

impl Texts {
    fn of(comparison: &TextComparison, has_patterns: bool) -> Option<Self> {
        let without = |why: &str| {
            let (rows, not_shown) = (Vec::new(), String::new());
            Some(Self { summary: why.to_owned(), rows, not_shown, has_patterns: false })
        };
        match comparison {
            TextComparison::None => None,
            TextComparison::OnlyEarlier => without("Only the earlier capture has a text."),
            TextComparison::OnlyLater => without("Only the newer capture has a text."),
            TextComparison::TooLarge => without("What changed is not known, because the texts are too large."),
            TextComparison::Busy => without("The texts were not compared in time. Reload the page."),
            TextComparison::Compared(diff) => Some(Self {
                summary: text_diff::summary(diff.counts),
                rows: RowView::of(diff),
                not_shown: text_diff::not_shown(diff.rows_left_out),
                has_patterns,
            }),
        }
    }
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
    use grabd_domain::monitor::TextDiff;

    use super::*;

    #[test]
    fn texts_have_a_summary_in_words_unless_there_are_none() {
        let of = |comparison: TextComparison| Texts::of(&comparison, true);
        assert_eq!(of(TextComparison::None), None);
        let equal = of(TextComparison::Compared(TextDiff::default())).unwrap();
        assert_eq!((&*equal.summary, equal.rows.len(), equal.has_patterns), ("The texts are equal.", 0, true));
        for (comparison, word) in [
            (TextComparison::OnlyEarlier, "earlier"),
            (TextComparison::OnlyLater, "newer"),
            (TextComparison::TooLarge, "too large"),
            (TextComparison::Busy, "Reload"),
        ] {
            let texts = of(comparison).unwrap();
            assert!(texts.summary.contains(word) && !texts.has_patterns, "{texts:?}");
        }
    }

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
