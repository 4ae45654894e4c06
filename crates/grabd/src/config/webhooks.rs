//! Section `webhooks`.

use std::path::PathBuf;

use serde::Deserialize;

/// Section `webhooks`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "default.toml says what each is")]
pub struct Webhooks {
    pub allow_http: bool,
    pub ca_file: PathBuf,
}
