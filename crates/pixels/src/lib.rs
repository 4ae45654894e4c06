//! Work on the pixels of images. It is slow without optimization, so this package is optimized in all builds.
//!
//! Functions that take long are not generic, because a generic function is compiled by the package that uses it.
//!
//! [`plan`] and [`cut`] cut tall images into slices: images of the full width and a limited height, which together are the
//! whole image. `plan` chooses the rows of each slice, and `cut` makes the slices of an encoded image. [`encode_jpeg`] encodes
//! an image. [`has_one_colour`] finds images that show nothing.
//! an image. [`check_size`], [`check_jpeg`] and [`Timed`] refuse images that are no captures before they are decoded.

mod cut;
mod limited;
mod one_colour;
mod plan;
mod rgb;
mod trusted;

pub use cut::{Cut, Error, Format, Slice, cut, memory_bytes};
pub use one_colour::has_one_colour;
pub use plan::{MAX_SLICES, Rows, is_uniform, plan};
pub use rgb::{encode_jpeg, image_on_white, on_white, without_alpha};
pub use trusted::{DECODE_LIMIT, MAX_PIXELS, MAX_SIDE, Timed, check_jpeg, check_size};
