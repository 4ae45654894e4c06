//! Section `samples`.

use grabd_domain::target::TargetUrl;
use serde::Deserialize;

use super::{Problems, lists};

/// The most sites. The start page lists all of them, and the images of all of them are kept in memory.
const MAX_SITES: usize = 5;

/// Section `samples`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "default.toml says what each is")]
pub struct Samples {
    #[serde(deserialize_with = "lists::list")]
    pub sites: Vec<String>,
}

impl Samples {
    pub(super) fn validate(&self, problems: &mut Problems) {
        if self.sites.len() > MAX_SITES {
            problems.add("samples.sites", &self.sites.len().to_string(), &format!("at most {MAX_SITES} URLs"));
        }
        for site in self.sites.iter().filter(|site| TargetUrl::parse(site).is_err()) {
            problems.add("samples.sites", site, "http(s) URLs of public pages, such as https://example.com/");
        }
    }

    /// The URLs, as the engine takes them.
    pub(crate) fn urls(&self) -> Vec<TargetUrl> {
        // Checked by `validate`.
        self.sites.iter().filter_map(|site| TargetUrl::parse(site).ok()).collect()
    }
}
