//! Section `limits`.

use serde::Deserialize;

use super::Problems;

/// Section `limits`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "default.toml says what each is")]
pub struct Limits {
    pub requests_per_minute: u32,
    pub async_queue: u32,
    pub connections: u32,
}

impl Limits {
    pub(super) fn validate(&self, problems: &mut Problems) {
        problems.at_least_one("limits.requests_per_minute", self.requests_per_minute.into());
        problems.at_least_one("limits.async_queue", self.async_queue.into());
        problems.at_least_one("limits.connections", self.connections.into());
    }
}
