//! Section `mcp`.

use serde::Deserialize;

use super::origin::is_origin;
use super::{Problems, lists};

/// Section `mcp`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "default.toml says what each is")]
pub struct Mcp {
    #[serde(deserialize_with = "lists::list")]
    pub allowed_origins: Vec<String>,
}

impl Mcp {
    pub(super) fn validate(&self, problems: &mut Problems) {
        for origin in self.allowed_origins.iter().filter(|origin| !is_origin(origin)) {
            problems.add(
                "mcp.allowed_origins",
                origin,
                "http(s) origins such as https://app.example.com, without a path",
            );
        }
    }
}
