//! Section `service`.

use std::path::PathBuf;

use grabd_domain::contact_link::{ContactLink, ServiceLinks};
use serde::Deserialize;

use super::Problems;

/// Section `service`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "default.toml says what each is")]
pub struct Service {
    pub support: String,
    pub terms: String,
    pub privacy: String,
    pub imprint: String,
    pub status: String,
    pub packages_dir: PathBuf,
}

impl Service {
    pub(super) fn validate(&self, problems: &mut Problems) {
        let Self { support, terms, privacy, imprint, status, packages_dir: _ } = self;
        for (name, text) in [
            ("service.support", support),
            ("service.terms", terms),
            ("service.privacy", privacy),
            ("service.imprint", imprint),
            ("service.status", status),
        ] {
            if let (false, Err(error)) = (text.is_empty(), ContactLink::parse(text)) {
                let allowed = error.to_string();
                problems.add(name, text, allowed.strip_prefix("must be ").unwrap_or(&allowed));
            }
        }
    }

    /// The links, as the engine takes them.
    pub(crate) fn links(&self) -> ServiceLinks {
        // Checked by `validate`.
        let [support, terms, privacy, imprint, status] =
            [&self.support, &self.terms, &self.privacy, &self.imprint, &self.status]
                .map(|text| ContactLink::parse(text).ok());
        ServiceLinks { support, terms, privacy, imprint, status }
    }

    /// The settings that a service should have before it sells credits, and lacks.
    pub(crate) fn missing_to_sell(&self) -> Vec<&'static str> {
        let needed = [
            ("service.support", &self.support),
            ("service.terms", &self.terms),
            ("service.privacy", &self.privacy),
            ("service.imprint", &self.imprint),
        ];
        needed.into_iter().filter(|(_, text)| text.is_empty()).map(|(name, _)| name).collect()
    }
}
