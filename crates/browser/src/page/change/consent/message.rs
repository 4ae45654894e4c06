//! The messages of autoconsent.

use serde::Deserialize;

/// A message of autoconsent.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Message {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) cmp: Option<String>,
    pub(super) result: Option<bool>,
    pub(super) is_cosmetic: Option<bool>,
    /// Identifies a script that is to be run.
    pub(super) id: Option<String>,
    /// The script.
    pub(super) code: Option<String>,
}

impl Message {
    /// The last message about a dialog in which consent was refused.
    pub(super) fn done(cmp: String) -> Self {
        let kind = "autoconsentDone".to_owned();
        Self { kind, cmp: Some(cmp), result: None, is_cosmetic: Some(false), id: None, code: None }
    }
}
