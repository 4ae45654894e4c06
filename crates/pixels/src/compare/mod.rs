//! Finds what changed between two images, and draws it.
//!
//! `sheet` is what is kept of an image, `align` matches the rows of two images, `changes` compares them, `grid` makes
//! regions of what changed, and `draw` shows them.

mod align;
mod changes;
mod draw;
mod grid;
mod sheet;

use std::cell::Cell;
use std::io::Write;

pub use self::changes::changes;
use self::draw::Drawing;
pub use self::grid::{Grid, Tolerance};
pub use self::sheet::{Precision, Sheet};
use crate::drawing::{self, Limited};
use crate::picture::{Picture, PictureError, Size};
use crate::region::Region;
use crate::rows::Layout;

/// Draws an image of this size faded, with these regions in their colours and outlined, as a PNG of at most `max_bytes`.
///
/// # Errors
/// When the image cannot be read, the PNG cannot be written or is too large, or `is_stopped` returns true.
pub fn draw_changes(
    picture: Picture<'_>,
    size: Size,
    regions: &[Region],
    (to, max_bytes): (&mut dyn Write, u64),
    is_stopped: &dyn Fn() -> bool,
) -> Result<(), PictureError> {
    let is_exceeded = Cell::new(false);
    let limited = Limited::new(to, max_bytes, &is_exceeded);
    let drawn = encode((picture, size), regions, limited, is_stopped);
    if is_exceeded.get() { Err(PictureError::DrawingTooLarge) } else { drawn }
}

fn encode(
    (picture, size): (Picture<'_>, Size),
    regions: &[Region],
    to: impl Write,
    is_stopped: &dyn Fn() -> bool,
) -> Result<(), PictureError> {
    let mut png = drawing::begin(size.width, size.height, to)?;
    let mut drawing = Drawing::new(&mut png, (size.width, size.height), regions)?;
    let channels = |layout: Layout| layout.channels;
    picture.rows(is_stopped, channels, |channels, row| Ok(drawing.push(row, *channels)?))?;
    drawing.finish()?;
    Ok(png.finish()?)
}
