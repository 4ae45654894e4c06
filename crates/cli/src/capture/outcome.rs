//! The result of one page.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::api::Grab;
use crate::failure::Failure;

/// The result of one page.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) url: String,
    /// The capture, if one was created.
    pub(super) grab: Option<Grab>,
    /// Where the image was saved.
    pub(super) file: Option<PathBuf>,
    /// Where its slices were saved.
    pub(super) slices: Vec<PathBuf>,
    pub(super) failure: Option<Failure>,
    pub(super) duration: Duration,
}

impl Outcome {
    /// The capture as the API returns it, with the file name or the error added.
    pub(super) fn to_json(&self) -> Value {
        let mut object = match &self.grab {
            Some(Grab { json: Value::Object(members), .. }) => members.clone(),
            Some(_) | None => Map::from_iter([("target_url".to_owned(), json!(self.url))]),
        };
        if let Some(file) = &self.file {
            object.insert("file".to_owned(), json!(file.display().to_string()));
        }
        if !self.slices.is_empty() {
            let paths = self.slices.iter().map(|path| path.display().to_string());
            object.insert("slice_files".to_owned(), paths.collect());
        }
        if let Some(failure) = &self.failure {
            let error = json!({ "code": failure.code(), "message": failure.message() });
            object.insert("error".to_owned(), error);
            object.extend(failure.error_cause().map(|cause| ("error_cause".to_owned(), json!(cause))));
        }
        Value::Object(object)
    }
}
