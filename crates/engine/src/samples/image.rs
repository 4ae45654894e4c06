//! The image of a sample, or why there is none.

use bytes::Bytes;

/// The image of a sample, in WebP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampleImage {
    /// The file.
    pub image: Bytes,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// Duration of the render in milliseconds.
    pub execution_ms: u32,
}

/// Why there is no image of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SampleError {
    /// This process has no browsers, or there is no such page.
    #[error("there are no browsers in this process, or no such page")]
    Unavailable,
    /// No slot is idle, or grabs wait for one.
    #[error("all browsers are busy")]
    Busy,
    /// The render failed, or the page may not be captured.
    #[error("the sample could not be captured")]
    Failed,
    /// The image of a live page is too large to be kept.
    #[error("the image of the page is too large")]
    TooLarge,
}
