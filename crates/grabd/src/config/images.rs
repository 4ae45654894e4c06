//! Where images are stored, and how they are delivered.

use std::path::PathBuf;

use grabd_images::Location;
use serde::Deserialize;

use super::origin::is_origin;
use super::problems::Problems;
use super::secret::Secret;

/// Section `images`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "default.toml says what each is")]
pub struct Images {
    pub url: String,
    pub fallback_url: String,
    pub endpoint: String,
    pub region: String,
    pub path_style: bool,
    pub access_key_id: String,
    pub secret_access_key: Secret,
    pub ca_file: PathBuf,
    pub direct_upload: bool,
    pub delivery: Delivery,
}

/// How the content of an image gets from an object store to its viewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "default.toml says what each is")]
pub enum Delivery {
    Stream,
    Redirect,
}

impl Images {
    /// `images.url`, unless it is empty.
    pub fn location(&self) -> Option<Location> {
        Location::parse(&self.url)
    }

    /// `images.fallback_url`, unless it is empty.
    pub fn fallback(&self) -> Option<Location> {
        Location::parse(&self.fallback_url)
    }

    /// The certificates are validated when they are used.
    pub(super) fn validate(&self, problems: &mut Problems) {
        let Self { url, fallback_url, endpoint, access_key_id, secret_access_key, delivery, .. } = self;
        for (key, url) in [("images.url", url), ("images.fallback_url", fallback_url)] {
            if !url.is_empty() && Location::parse(url).is_none() {
                // It may contain a password.
                let shown = if url.contains('@') { "a URL with an @" } else { url };
                problems.add(key, shown, &format!("empty, {}", Location::ALLOWED));
            }
        }
        if self.fallback().is_some_and(|fallback| self.location() == Some(fallback)) {
            problems.add("images.fallback_url", fallback_url, "another place than images.url");
        }
        if !endpoint.is_empty() && !is_origin(endpoint) {
            let allowed = "an http(s) origin such as https://s3.example.com, without a path and without the bucket";
            problems.add("images.endpoint", endpoint, allowed);
        }
        if access_key_id.is_empty() != secret_access_key.expose().is_empty() {
            let allowed = "set exactly if images.secret_access_key is set";
            problems.add("images.access_key_id", &format!("\"{access_key_id}\""), allowed);
        }
        if *delivery == Delivery::Redirect && !matches!(self.location(), Some(Location::Bucket { .. })) {
            problems.add("images.delivery", "redirect", "stream, unless images.url is a bucket (s3://…)");
        }
    }
}
