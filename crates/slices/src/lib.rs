//! Cuts tall images into slices: images of the full width and a limited height, which together are the whole image.
//!
//! [`plan`] chooses the rows of each slice, and [`cut`] makes the slices of an encoded image.

mod cut;
mod limited;
mod plan;

pub use cut::{Cut, Error, Format, Slice, cut, memory_bytes};
pub use plan::{MAX_SLICES, Rows, is_uniform, plan};
