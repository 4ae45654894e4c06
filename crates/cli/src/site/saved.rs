//! A page of a job whose image was downloaded.

use std::path::PathBuf;

use serde_json::Value;

use crate::failure::Failure;

/// A page of a job, and where its image is saved.
#[derive(Debug)]
pub(super) struct SavedPage {
    pub(super) page: Value,
    /// The path of the image. None if there is no image.
    pub(super) file: Option<PathBuf>,
    /// Why the image was not saved.
    pub(super) failure: Option<Failure>,
}
