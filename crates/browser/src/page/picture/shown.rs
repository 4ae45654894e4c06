//! Positions of elements and headings in the image.

use std::time::Duration;

use chromiumoxide::cdp::browser_protocol::page::Viewport as Clip;
use serde::{Deserialize, Serialize};

use crate::page::context::CaptureContext;
use crate::page::error::CaptureError;
use crate::page::script;

/// The scripts that read the page. They are sent only if files or slices are asked for.
pub(in crate::page) const EXTRACT: &str = concat!(
    "(() => {\n",
    include_str!("../scripts/extract/tree.js"),
    include_str!("../scripts/extract/files.js"),
    include_str!("../scripts/extract/main.js"),
    include_str!("../scripts/extract/footnotes.js"),
    include_str!("../scripts/extract/frames.js"),
    include_str!("../scripts/extract/math.js"),
    include_str!("../scripts/extract/code.js"),
    include_str!("../scripts/extract/images.js"),
    include_str!("../scripts/extract/quotes.js"),
    include_str!("../scripts/extract/tables.js"),
    include_str!("../scripts/extract/threads.js"),
    include_str!("../scripts/extract/markdown.js"),
    "return { html, text, links, headings, markdown, paper, height, today };\n})()"
);

/// The scripts that list elements and outline what screen readers read. They are sent only if these are asked for.
pub(in crate::page) const ELEMENTS: &str = concat!(
    "(() => {\n",
    include_str!("../scripts/extract/tree.js"),
    include_str!("../scripts/extract/roles.js"),
    include_str!("../scripts/extract/names.js"),
    include_str!("../scripts/extract/areas.js"),
    include_str!("../scripts/clipping.js"),
    include_str!("../scripts/extract/elements.js"),
    include_str!("../scripts/extract/covers.js"),
    include_str!("../scripts/extract/accessibility.js"),
    "return { elements, frameAt, frontsOfFrame };\n})()"
);

/// How long one file may take, within the time of the capture.
const FILE_LIMIT: Duration = Duration::from_secs(10);

/// The size of the image in pixels.
#[derive(Clone, Copy, Serialize)]
pub(in crate::page) struct ImageSize {
    pub(in crate::page) width: u32,
    pub(in crate::page) height: u32,
}

/// What the scripts need to know in order to say where something is in the image.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::page) struct ShownPart<'a> {
    /// The captured part of the page, or the window if there is none.
    area: Option<&'a Clip>,
    left_edge: f64,
    image: ImageSize,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LeftEdge {
    left_edge: f64,
}

/// The part of the page that the image shows: `clip`, or the window.
///
/// # Errors
/// If the browser does not answer.
pub(in crate::page) async fn shown_part<'a>(
    context: &CaptureContext<'_>,
    image: ImageSize,
    clip: Option<&'a Clip>,
) -> Result<ShownPart<'a>, CaptureError> {
    let left_edge = match clip {
        Some(_) => script::call::<LeftEdge>(context.tab, limit(context), "leftEdge", &()).await?,
        None => None,
    };
    let left_edge = left_edge.map_or(0.0, |LeftEdge { left_edge }| left_edge);
    Ok(ShownPart { area: clip, left_edge, image })
}

/// How long a call for one file may take.
pub(in crate::page) fn limit(context: &CaptureContext<'_>) -> Duration {
    FILE_LIMIT.min(context.remaining())
}
