//! A capture, as the API tells it.

use serde::Deserialize;
use serde_json::Value;
use url::Url;

use super::{Answer, Api};
use crate::failure::Failure;

/// A capture. What the API tells beyond this is kept as it came.
#[derive(Clone, Debug)]
pub(crate) struct Grab {
    /// What is read here.
    pub(crate) read: Read,
    /// All of it.
    pub(crate) whole: Value,
}

/// The members that this program reads.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Read {
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
    pub(crate) http_status: Option<u16>,
    pub(crate) image_width: Option<u32>,
    pub(crate) image_height: Option<u32>,
    pub(crate) truncated: Option<bool>,
}

impl Grab {
    /// The capture in an answer.
    pub(crate) fn of(api: &Api, answer: Answer) -> Result<Self, Failure> {
        Self::parse(answer.body)
            .ok_or_else(|| Failure::Foreign { url: api.base().clone(), status: reqwest::StatusCode::OK })
    }

    /// The capture that a value is.
    pub(crate) fn parse(whole: Value) -> Option<Self> {
        let read = Read::deserialize(&whole).ok()?;
        Some(Self { read, whole })
    }

    /// Will nothing change any more?
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.read.status.as_str(), "done" | "failed")
    }

    /// Where the picture is. Pictures of test keys are told without their origin.
    pub(crate) fn image(&self, api: &Api) -> Option<Url> {
        api.base().join(self.read.image_url.as_deref()?).ok()
    }
}
