//! Formats of images, and the extensions of their files.

use std::path::Path;

use clap::ValueEnum;

use crate::failure::Failure;

/// Extensions of other files than images, and of images of formats that the service does not make.
const OTHER_TYPES: [&str; 14] =
    ["avif", "bmp", "gif", "har", "heic", "html", "ico", "jxl", "md", "mhtml", "pdf", "svg", "tif", "tiff"];

/// Image formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Png,
    Jpeg,
    Webp,
}

impl Format {
    /// Whether a file has an extension of another format.
    pub(crate) fn check_extension(path: &Path, format: Option<Self>) -> Result<(), Failure> {
        let Some(extension) = path.extension().and_then(|extension| extension.to_str()) else { return Ok(()) };
        let shown = path.display();
        match (Self::from_extension(extension), format) {
            (Some(named), Some(format)) if named != format => Err(Failure::Usage(format!(
                "{shown} has the extension of {}, and the image is {}; choose another name or format",
                named.as_str(),
                format.as_str()
            ))),
            (Some(_), _) => Ok(()),
            (None, Some(_)) if !OTHER_TYPES.contains(&&*extension.to_ascii_lowercase()) => Ok(()),
            (None, _) => Err(Failure::Usage(format!(
                "{shown} does not have an extension of png, jpeg or webp, which are the formats of images; use .png, .jpg \
                 or .webp"
            ))),
        }
    }

    /// The API's name of the format.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Jpeg => "jpeg",
            Self::Webp => "webp",
        }
    }

    /// The format for a file name extension.
    pub(crate) fn from_extension(extension: &str) -> Option<Self> {
        match extension.to_ascii_lowercase().as_str() {
            "png" => Some(Self::Png),
            "jpg" | "jpeg" => Some(Self::Jpeg),
            "webp" => Some(Self::Webp),
            _ => None,
        }
    }
}
