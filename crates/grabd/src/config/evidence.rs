//! Section `evidence`.

use grabd_domain::target::TargetUrl;
use serde::Deserialize;

use super::Problems;

/// Section `evidence`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "default.toml says what each is")]
pub struct Evidence {
    pub timestamp_url: String,
}

impl Evidence {
    pub(super) fn validate(&self, problems: &mut Problems) {
        if !self.timestamp_url.is_empty() && TargetUrl::parse(&self.timestamp_url).is_err() {
            let allowed = "an http(s) URL of a time stamp authority, such as https://tsa.example.com/, or empty";
            problems.add("evidence.timestamp_url", &self.timestamp_url, allowed);
        }
    }

    /// The authority, as the engine takes it.
    pub(crate) fn timestamp_url(&self) -> Option<TargetUrl> {
        // Checked by `validate`. The empty text is no URL.
        TargetUrl::parse(&self.timestamp_url).ok()
    }
}
