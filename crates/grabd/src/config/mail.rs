//! Section `mail`.

use std::path::PathBuf;

use grabd_engine::mail::{self, Server, Smtp};
use serde::Deserialize;

use super::{Problems, Secret};

/// Section `mail`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "default.toml says what each is")]
pub struct Mail {
    pub smtp_url: Secret,
    pub from: String,
    pub ca_file: PathBuf,
}

impl Mail {
    /// The certificates are validated when they are used.
    pub(super) fn validate(&self, problems: &mut Problems) {
        let Self { smtp_url, from, ca_file: _ } = self;
        if smtp_url.expose().is_empty() {
            return;
        }
        let server = Server { url: smtp_url.expose(), from, extra_roots: b"", own_host: "localhost" };
        match Smtp::new(server) {
            Ok(_) => {}
            Err(error @ mail::Error::From) => problems.add("mail.from", from, &error.to_string()),
            // It may contain a password.
            Err(error) => problems.add("mail.smtp_url", "another address", &error.to_string()),
        }
    }
}
