//! Work on the pixels of images. It is slow without optimization, so this package is optimized in all builds.
//!
//! Functions that take long are not generic, because a generic function is compiled by the package that uses it.
//!
//! [`plan`] and [`cut`] cut tall images into slices: images of the full width and a limited height, which together are the
//! whole image. `plan` chooses the rows of each slice, and `cut` makes the slices of an encoded image. [`encode_jpeg`] encodes
//! an image. [`has_one_colour`] finds images that show nothing. [`check_size`], [`check_jpeg`] and [`Timed`] refuse images that are no captures before they are decoded.
//!
//! A [`Picture`] is read row by row: [`changes`] finds what changed between two of them, and [`draw_changes`] shows it;
//! [`draw_marks`] numbers boxes; [`perceptual_hash`] hashes an image; [`shrink`] makes its thumbnail, and [`shrink_to`] a
//! smaller copy of any size.
//!
//! [`recompress`] makes the file of a PNG smaller, with the same pixels.

mod compare;
mod cut;
mod deflate;
mod drawing;
mod limited;
mod marks;
mod one_colour;
mod phash;
mod picture;
mod plan;
mod recompress;
mod region;
mod rgb;
mod rows;
mod thumbnail;
mod trusted;

pub use compare::{Grid, Precision, Sheet, Tolerance, changes, draw_changes};
pub use cut::{Cut, Error, Format, Slice, cut, memory_bytes};
pub use marks::draw_marks;
pub use one_colour::has_one_colour;
pub use phash::perceptual_hash;
pub use picture::{Picture, PictureError, Size, Source};
pub use plan::{MAX_SLICES, Rows, is_uniform, plan};
pub use png::EncodingError;
pub use recompress::{RECOMPRESSION_BYTES, is_recompressible, recompress, recompressed_bytes};
pub use region::Region;
pub use rgb::{encode_jpeg, image_on_white, on_white, without_alpha};
pub use thumbnail::{Part, THUMBNAIL_BYTES, THUMBNAIL_HEIGHT, THUMBNAIL_WIDTH, Target, shrink, shrink_to};
pub use trusted::{DECODE_LIMIT, MAX_PIXELS, MAX_SIDE, Timed, check_jpeg, check_size};
