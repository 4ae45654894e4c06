//! Section `database`.

use serde::Deserialize;

use super::{Problems, Secret};

/// Section `database`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "default.toml says what each is")]
pub struct Database {
    pub url: Secret,
}

impl Database {
    /// The URL is not shown, since it may contain a password.
    pub(super) fn validate(&self, problems: &mut Problems) {
        let url = self.url.expose();
        let is_known = ["sqlite:", "postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme));
        if !url.is_empty() && !is_known {
            problems.add("database.url", "another scheme", "sqlite:///path or postgres://user:password@host/name");
        }
    }

    /// Whether it is a PostgreSQL database.
    pub(super) fn is_postgres(&self) -> bool {
        self.url.expose().starts_with("postgres")
    }
}
