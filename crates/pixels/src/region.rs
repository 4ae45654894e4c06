//! A rectangle of an image.

/// A rectangle in pixels of the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// The left edge.
    pub x: u32,
    /// The top edge.
    pub y: u32,
    /// The width.
    pub width: u32,
    /// The height.
    pub height: u32,
}
