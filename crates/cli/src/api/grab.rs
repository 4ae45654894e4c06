//! A capture as the API returns it.

use std::fmt;

use serde::Deserialize;
use serde_json::Value;
use url::Url;

use super::{Api, ApiResponse};
use crate::failure::{CaptureError, Failure};

/// A capture.
#[derive(Clone, Debug)]
pub(crate) struct Grab {
    /// The members that this program uses.
    pub(crate) fields: GrabFields,
    /// The complete object, as received.
    pub(crate) json: Value,
}

/// The members of a capture that this program uses.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct GrabFields {
    pub(crate) id: String,
    pub(crate) status: String,
    pub(crate) created_at: String,
    #[serde(default)]
    pub(crate) target_url: String,
    pub(crate) image_url: Option<String>,
    pub(crate) format: Option<String>,
    pub(crate) bytes: Option<u64>,
    pub(crate) execution_ms: Option<u64>,
    pub(crate) error_message: Option<String>,
    pub(crate) error_code: Option<String>,
    pub(crate) error_cause: Option<String>,
    pub(crate) http_status: Option<u16>,
    pub(crate) image_width: Option<u32>,
    pub(crate) image_height: Option<u32>,
    pub(crate) truncated: Option<bool>,
    pub(crate) warnings: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) files: Vec<FileFields>,
    pub(crate) challenge: Option<String>,
    pub(crate) consent: Option<Consent>,
    pub(crate) difference: Option<Difference>,
    pub(crate) phash: Option<String>,
    #[serde(default)]
    pub(crate) stages: Vec<StageReached>,
}

impl GrabFields {
    /// Why a failed capture failed.
    pub(crate) fn error(&self) -> CaptureError {
        CaptureError {
            code: self.error_code.clone(),
            message: self.error_message.clone().unwrap_or_else(|| "The capture failed.".to_owned()),
            cause: self.error_cause.clone(),
        }
    }
}

/// A stage that the render has reached.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct StageReached {
    pub(crate) stage: String,
    pub(crate) ms: u64,
}

/// The members of a file beside the image that this program uses.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct FileFields {
    pub(crate) kind: String,
    pub(crate) url: String,
    pub(crate) viewport: Option<Viewport>,
}

/// The window of an image in a further viewport.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Viewport {
    pub(crate) width: u32,
    pub(crate) height: u32,
}

/// A consent dialog that was found on the page.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Consent {
    pub(crate) cmp: String,
    pub(crate) result: String,
}

/// What changed since the image of an earlier capture.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Difference {
    /// The id of the earlier capture.
    pub(crate) compared_to: String,
    ratio: f64,
    pub(crate) regions: Vec<Region>,
    image_url: Option<String>,
}

/// A changed region of an image, in pixels.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Region {
    x: u32,
    y: u32,
    width: u32,
    height: u32,
}

impl Difference {
    /// The share of the image that changed, from 0 to 1.
    pub(crate) const fn ratio(&self) -> f64 {
        self.ratio
    }

    /// The URL of the image with the changed regions, if anything changed.
    pub(crate) fn image(&self, api: &Api) -> Option<Url> {
        api.base().join(self.image_url.as_deref()?).ok()
    }
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { x, y, width, height } = self;
        write!(f, "{width} x {height} at {x},{y}")
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = self.ratio * 100.0;
        match (self.regions.len(), percent) {
            (0, _) => return f.write_str("nothing changed"),
            // Never rounded to nothing.
            (_, ..0.1) => f.write_str("less than 0.1 % changed in "),
            (_, _) => write!(f, "{percent:.1} % changed in "),
        }?;
        match self.regions.len() {
            1 => f.write_str("1 region"),
            count => write!(f, "{count} regions"),
        }
    }
}

impl Grab {
    /// Reads the capture from a response.
    pub(crate) fn from_response(api: &Api, response: ApiResponse) -> Result<Self, Failure> {
        Self::parse(response.body)
            .ok_or_else(|| Failure::UnexpectedResponse { url: api.base().clone(), status: reqwest::StatusCode::OK })
    }

    /// Reads a capture from JSON.
    pub(crate) fn parse(json: Value) -> Option<Self> {
        let fields = GrabFields::deserialize(&json).ok()?;
        Some(Self { fields, json })
    }

    /// Whether the status is final.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.fields.status.as_str(), "done" | "failed")
    }

    /// The URL of a file beside the image.
    pub(crate) fn file(api: &Api, file: &FileFields) -> Option<Url> {
        api.base().join(&file.url).ok()
    }

    /// The URL of the image. The API returns placeholder URLs without an origin, so the base URL is applied.
    pub(crate) fn image(&self, api: &Api) -> Option<Url> {
        api.base().join(self.fields.image_url.as_deref()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn difference_is_described_in_words() {
        let region = json!({ "x": 0, "y": 0, "width": 16, "height": 16 });
        for (ratio, regions, expected) in [
            (0.0, vec![], "nothing changed"),
            (0.000_001, vec![&region], "less than 0.1 % changed in 1 region"),
            (0.021, vec![&region; 3], "2.1 % changed in 3 regions"),
            (1.0, vec![&region], "100.0 % changed in 1 region"),
        ] {
            let json =
                json!({ "compared_to": "01993e1c-7b1a-7000-8000-0123456789ab", "ratio": ratio, "regions": regions });
            assert_eq!(Difference::deserialize(json).unwrap().to_string(), expected);
        }
    }
}
