//! Kinds of devices.

use super::{Scale, Viewport};

/// The kind of device that a page is shown on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Device {
    /// A window with a mouse.
    #[default]
    Desktop,
    /// A small touch screen.
    Phone,
    /// A large touch screen.
    Tablet,
}

impl Device {
    /// Its name in the APIs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Desktop => "desktop",
            Self::Phone => "phone",
            Self::Tablet => "tablet",
        }
    }

    pub(super) fn parse(name: &str) -> Option<Self> {
        [Self::Desktop, Self::Phone, Self::Tablet].into_iter().find(|device| device.as_str() == name)
    }

    /// Its viewport and scale, for requests that do not set them.
    pub const fn defaults(self) -> (Viewport, Scale) {
        match self {
            Self::Desktop => (Viewport::DEFAULT, Scale::ONE),
            Self::Phone => (Viewport { width: 390, height: 844 }, Scale { hundredths: 300 }),
            Self::Tablet => (Viewport { width: 768, height: 1024 }, Scale { hundredths: 200 }),
        }
    }
}
