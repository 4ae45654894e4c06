//! Section `cluster`, and what the role of the process needs.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, de};

use super::{Problems, ProcessRole, Renderer};

/// Section `cluster`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "default.toml says what each is")]
pub struct Cluster {
    pub enabled: bool,
    #[serde(deserialize_with = "optional_address")]
    pub listen: Option<SocketAddr>,
    pub ca_file: PathBuf,
    pub cert_file: PathBuf,
    pub key_file: PathBuf,
}

/// An address, or none for an empty text.
fn optional_address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SocketAddr>, D::Error> {
    let text = String::deserialize(deserializer)?;
    match text.as_str() {
        "" => Ok(None),
        text => text.parse().map(Some).map_err(|_| {
            de::Error::invalid_value(de::Unexpected::Str(text), &"an address and a port such as 10.0.0.5:50052")
        }),
    }
}

impl Cluster {
    /// The files of mutual TLS. `None`: plain text.
    pub fn tls_files(&self) -> Option<TlsFiles<'_>> {
        let Self { ca_file: ca, cert_file: cert, key_file: key, .. } = self;
        (!ca.as_os_str().is_empty()).then_some(TlsFiles { ca, cert, key })
    }
}

/// The files of mutual TLS.
#[derive(Clone, Copy, Debug)]
pub struct TlsFiles<'a> {
    /// The certificate authority of the cluster.
    pub ca: &'a Path,
    /// The certificate of this process.
    pub cert: &'a Path,
    /// Its key.
    pub key: &'a Path,
}

/// What the role and the sections are checked with.
pub(super) struct Checked<'a> {
    pub(super) role: ProcessRole,
    pub(super) cluster: &'a Cluster,
    pub(super) renderer: &'a Renderer,
    pub(super) is_postgres: bool,
    pub(super) has_key_file: bool,
    pub(super) has_public_url: bool,
    pub(super) has_images_url: bool,
}

impl Checked<'_> {
    pub(super) fn validate(&self, problems: &mut Problems) {
        let Self { role, cluster, .. } = self;
        self.renderer.validate(*role, cluster.enabled, problems);
        if matches!(role, ProcessRole::Edge | ProcessRole::Core) {
            if !cluster.enabled {
                problems.add("role", role.as_str(), "all or renderer unless cluster.enabled is true");
            }
            if !self.has_public_url {
                let allowed =
                    "the public origin of the edges, such as https://grabs.example.com, for an edge or a core";
                problems.add("http.public_url", "nothing", allowed);
            }
        }
        if cluster.enabled && !self.is_postgres {
            problems.add("cluster.enabled", "true", "false unless database.url is a PostgreSQL database");
        }
        if cluster.enabled && !self.has_key_file {
            let allowed = "a file with the key that all processes of the cluster use, if cluster.enabled is true";
            problems.add("secrets.key_file", "nothing", allowed);
        }
        if cluster.enabled && !self.has_images_url {
            let allowed = "a directory or a bucket that all processes of the cluster share, if cluster.enabled is true";
            problems.add("images.url", "nothing", allowed);
        }
        let files = [&cluster.ca_file, &cluster.cert_file, &cluster.key_file];
        let given = files.iter().filter(|file| !file.as_os_str().is_empty()).count();
        if given != 0 && given != files.len() {
            let allowed = "given with cert_file and key_file, or all three empty";
            problems.add("cluster.ca_file", &format!("{given} of 3 files"), allowed);
        }
        let Some(listen) = cluster.listen else { return };
        if !cluster.enabled || !matches!(role, ProcessRole::All | ProcessRole::Core) {
            let allowed = "empty unless cluster.enabled is true and the role is all or core";
            problems.add("cluster.listen", &listen.to_string(), allowed);
        } else if given == 0 && !listen.ip().is_loopback() {
            let allowed = "an address of loopback, or any address with ca_file, cert_file and key_file";
            problems.add("cluster.listen", &listen.to_string(), allowed);
        }
    }
}
