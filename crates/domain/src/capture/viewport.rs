//! The window that a page is laid out in.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::limits;

/// The viewport in CSS pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Viewport {
    pub(super) width: u32,
    pub(super) height: u32,
}

impl Viewport {
    /// The viewport of a request that does not say otherwise.
    pub const DEFAULT: Self = Self { width: limits::DEFAULT_WIDTH, height: limits::DEFAULT_HEIGHT };

    /// Width in CSS pixels.
    pub const fn width(self) -> u32 {
        self.width
    }

    /// Height in CSS pixels.
    pub const fn height(self) -> u32 {
        self.height
    }
}

impl fmt::Display for Viewport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.width, self.height)
    }
}
