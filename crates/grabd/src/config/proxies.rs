//! Section `proxies`.

use std::path::PathBuf;

use serde::Deserialize;

/// Section `proxies`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "default.toml says what each is")]
pub struct Proxies {
    pub enabled: bool,
    pub ca_file: PathBuf,
}
