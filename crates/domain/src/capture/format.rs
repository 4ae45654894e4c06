//! The format of an image, and its resolution.

use serde::{Deserialize, Serialize};

/// Image format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Format {
    #[default]
    Png,
    Jpeg,
    Webp,
}

impl Format {
    /// The name in the contract, which is also the file extension.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Jpeg => "jpeg",
            Self::Webp => "webp",
        }
    }

    /// The media type.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Webp => "image/webp",
        }
    }

    /// Parses the name in the contract.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Png, Self::Jpeg, Self::Webp].into_iter().find(|format| format.as_str() == text)
    }
}

/// Image pixels per CSS pixel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scale {
    pub(super) hundredths: u16,
}

impl Scale {
    /// One image pixel per CSS pixel.
    pub const ONE: Self = Self { hundredths: 100 };

    /// A factor, rounded to two decimals. None if it is not a positive number below 100.
    pub(super) fn new(factor: f64) -> Option<Self> {
        let hundredths = (factor * 100.0).round();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
        (1.0..10_000.0).contains(&hundredths).then_some(Self { hundredths: hundredths as u16 })
    }

    /// The factor.
    pub fn factor(self) -> f64 {
        f64::from(self.hundredths) / 100.0
    }

    /// The factor in hundredths, at least 1.
    pub const fn hundredths(self) -> u16 {
        self.hundredths
    }

    /// The factor, rounded up to a whole number.
    pub fn rounded_up(self) -> u32 {
        u32::from(self.hundredths.div_ceil(100))
    }
}
