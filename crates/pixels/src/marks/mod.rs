//! Draws numbered marks on a copy of an image. `labels` finds a place for each number, and `draw` draws them.

mod draw;
mod labels;

use std::cell::Cell;
use std::io::Write;

use self::draw::Drawing;
use crate::drawing::{self, Limited};
use crate::picture::{Picture, PictureError, Size};
use crate::region::Region;

/// Draws an image of this size with an outline around each box, and the number of the box, as a PNG of at most `max_bytes`.
/// The numbers begin at 1. `scale` is the number of image pixels per CSS pixel: the size of the numbers follows it.
///
/// # Errors
/// When the image cannot be read, the PNG cannot be written or is too large, or `is_stopped` returns true.
pub fn draw_marks(
    picture: Picture<'_>,
    Size { width, height }: Size,
    (boxes, scale): (&[Region], u32),
    (to, max_bytes): (&mut dyn Write, u64),
    is_stopped: &dyn Fn() -> bool,
) -> Result<(), PictureError> {
    let is_exceeded = Cell::new(false);
    let limited = Limited::new(to, max_bytes, &is_exceeded);
    let draw = || {
        let mut png = drawing::begin(width, height, limited)?;
        let mut drawing = Drawing::new(&mut png, (width, height), boxes, scale)?;
        picture.rows(is_stopped, |layout| layout.channels, |channels, row| Ok(drawing.push(row, *channels)?))?;
        drawing.finish()?;
        Ok(png.finish()?)
    };
    let drawn = draw();
    if is_exceeded.get() { Err(PictureError::DrawingTooLarge) } else { drawn }
}
