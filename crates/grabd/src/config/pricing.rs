//! Section `pricing`.

use std::path::PathBuf;

use serde::Deserialize;

/// Section `pricing`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "default.toml says what each is")]
pub struct Pricing {
    pub file: PathBuf,
}
