//! Section `secrets`.

use std::path::PathBuf;

use serde::Deserialize;

/// Section `secrets`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "default.toml says what each is")]
pub struct Secrets {
    pub key_file: PathBuf,
}
