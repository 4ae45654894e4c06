//! A capture as the API returns it.

use std::borrow::Cow;

use grabd_api::{Attachment, Difference, Region};
use serde::Deserialize;
use serde_json::Value;
use url::Url;

use super::{Api, ApiResponse};
use crate::failure::{CaptureError, Failure};

/// A capture.
#[derive(Clone, Debug)]
pub(crate) struct Grab {
    /// Its members.
    pub(crate) fields: grabd_api::Grab<'static>,
    /// The complete object, as received.
    pub(crate) json: Value,
}

/// The URL of the image with the changed regions, if anything changed.
pub(crate) fn difference_image(api: &Api, difference: &Difference<'_>) -> Option<Url> {
    api.base().join(difference.image_url.as_deref()?).ok()
}

/// What changed, in words.
pub(crate) fn describe(difference: &Difference<'_>) -> String {
    let percent = difference.ratio * 100.0;
    let changed = match (difference.regions.len(), percent) {
        (0, _) => return "nothing changed".to_owned(),
        // Never rounded to nothing.
        (_, ..0.1) => "less than 0.1 % changed".to_owned(),
        (_, _) => format!("{percent:.1} % changed"),
    };
    match difference.regions.len() {
        1 => format!("{changed} in 1 region"),
        count => format!("{changed} in {count} regions"),
    }
}

/// A changed region, in words.
pub(crate) fn describe_region(Region { x, y, width, height }: Region) -> String {
    format!("{width} x {height} at {x},{y}")
}

impl Grab {
    /// Reads the capture from a response.
    pub(crate) fn from_response(api: &Api, response: ApiResponse) -> Result<Self, Failure> {
        Self::parse(response.body)
            .ok_or_else(|| Failure::UnexpectedResponse { url: api.base().clone(), status: reqwest::StatusCode::OK })
    }

    /// Reads a capture from JSON.
    pub(crate) fn parse(json: Value) -> Option<Self> {
        let fields = Deserialize::deserialize(&json).ok()?;
        Some(Self { fields, json })
    }

    /// Why a failed capture failed.
    pub(crate) fn error(&self) -> CaptureError {
        let owned = |text: &Cow<'_, str>| text.clone().into_owned();
        let message = self.fields.error_message.as_ref().map(owned);
        CaptureError {
            code: self.fields.error_code.as_ref().map(owned),
            message: message.unwrap_or_else(|| "The capture failed.".to_owned()),
            cause: self.fields.error_cause.as_ref().map(owned),
        }
    }

    /// The attachments.
    pub(crate) fn files(&self) -> &[Attachment<'static>] {
        self.fields.files.as_deref().unwrap_or_default()
    }

    /// Whether the status is final.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(&*self.fields.status, "done" | "failed")
    }

    /// The URL of an attachment.
    pub(crate) fn file(api: &Api, file: &Attachment<'_>) -> Option<Url> {
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
            assert_eq!(describe(&Difference::deserialize(json).unwrap()), expected);
        }
    }
}
