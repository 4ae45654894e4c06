//! The places where images are, and the marks of images that are moved from one place to another.

mod move_images;
mod record;

pub use move_images::{StoredImage, StoredImagePage};
pub use record::ImagePlaces;
