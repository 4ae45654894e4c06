//! Sections `cluster` and `renderer`, and the role of the process.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, de};

use super::{Problems, lists};

/// The part of the work that this process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum ProcessRole {
    /// Everything.
    All,
    /// Public interfaces over the database: no queue, no browser.
    Edge,
    /// The queue, gRPC, and the listener for renderers: no pages, no browser.
    Core,
    /// Browsers only: no database, no keys, no images.
    Renderer,
}

impl ProcessRole {
    /// Its name in the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Edge => "edge",
            Self::Core => "core",
            Self::Renderer => "renderer",
        }
    }
}

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

/// Section `renderer`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "default.toml says what each is")]
pub struct Renderer {
    #[serde(deserialize_with = "lists::list")]
    pub cores: Vec<String>,
}

/// The most cores of one renderer.
const MAX_CORES: usize = 64;

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
        self.validate_renderer(problems);
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

    fn validate_renderer(&self, problems: &mut Problems) {
        let Self { role, cluster, renderer: Renderer { cores }, .. } = self;
        if *role == ProcessRole::Renderer {
            if cluster.enabled {
                problems.add("cluster.enabled", "true", "false for a renderer, which has no database");
            }
            if !(1..=MAX_CORES).contains(&cores.len()) {
                let allowed = format!("from 1 to {MAX_CORES} addresses such as core-1.internal:50052 for a renderer");
                problems.add("renderer.cores", &cores.len().to_string(), &allowed);
            }
        } else if !cores.is_empty() {
            problems.add("renderer.cores", &cores.join(","), "empty unless the role is renderer");
        }
        for core in cores.iter().filter(|core| !is_host_and_port(core)) {
            problems.add("renderer.cores", core, "a host or an address, and a port: core-1.internal:50052");
        }
    }
}

fn is_host_and_port(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    let is_host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte)),
    };
    is_host && port.parse::<u16>().is_ok_and(|port| port > 0)
}
