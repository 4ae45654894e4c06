//! Sections `cluster` and `renderer`, and the role of the process.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, de};

use super::{Config, Problems, lists};

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
    pub images_dir: PathBuf,
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

pub(super) fn validate(config: &Config, problems: &mut Problems) {
    let Config { role, cluster, renderer, .. } = config;
    let name = format!("{role:?}").to_lowercase();
    if *role == ProcessRole::Renderer {
        if cluster.enabled {
            problems.add("cluster.enabled", "true", "false for a renderer, which has no database");
        }
        if !(1..=MAX_CORES).contains(&renderer.cores.len()) {
            let allowed = format!("from 1 to {MAX_CORES} addresses such as core-1.internal:50052 for a renderer");
            problems.add("renderer.cores", &renderer.cores.len().to_string(), &allowed);
        }
    } else if !renderer.cores.is_empty() {
        problems.add("renderer.cores", &renderer.cores.join(","), "empty unless the role is renderer");
    }
    for core in renderer.cores.iter().filter(|core| !is_host_and_port(core)) {
        problems.add("renderer.cores", core, "a host or an address, and a port: core-1.internal:50052");
    }
    if matches!(role, ProcessRole::Edge | ProcessRole::Core) && !cluster.enabled {
        problems.add("role", &name, "all or renderer unless cluster.enabled is true");
    }
    if cluster.enabled {
        if !config.database.url.expose().starts_with("postgres") {
            problems.add("cluster.enabled", "true", "false unless database.url is a PostgreSQL database");
        }
        if config.secrets.key_file.as_os_str().is_empty() {
            let allowed = "a file that all processes of the cluster share, if cluster.enabled is true";
            problems.add("secrets.key_file", "", allowed);
        }
    }
    let files = [&cluster.ca_file, &cluster.cert_file, &cluster.key_file];
    let given = files.iter().filter(|file| !file.as_os_str().is_empty()).count();
    if given != 0 && given != files.len() {
        problems.add(
            "cluster.ca_file",
            &format!("{given} of 3 files"),
            "all of ca_file, cert_file and key_file, or none",
        );
    }
    if let Some(listen) = cluster.listen {
        if !cluster.enabled || !matches!(role, ProcessRole::All | ProcessRole::Core) {
            let allowed = "empty unless cluster.enabled is true and the role is all or core";
            problems.add("cluster.listen", &listen.to_string(), allowed);
        } else if given == 0 && !listen.ip().is_loopback() {
            let allowed = "an address of loopback, or any address with ca_file, cert_file and key_file";
            problems.add("cluster.listen", &listen.to_string(), allowed);
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn problems(overlay: &[(&'static str, &str)]) -> String {
        let overlay: BTreeMap<_, _> = overlay.iter().map(|(key, value)| (*key, (*value).to_owned())).collect();
        Config::with(&overlay).err().map(|problems| problems.to_string()).unwrap_or_default()
    }

    #[test]
    fn cluster_needs_postgres_and_a_shared_key_file() {
        let postgres = ("database.url", "postgres://grabd@db/grabd");
        let key = ("secrets.key_file", "/etc/grabd/secrets.key");
        assert_eq!(problems(&[("cluster.enabled", "true"), postgres, key]), "");
        assert!(problems(&[("cluster.enabled", "true"), key]).contains("PostgreSQL"));
        assert!(problems(&[("cluster.enabled", "true"), postgres]).contains("secrets.key_file"));
        assert!(problems(&[("role", "edge"), postgres, key]).contains("cluster.enabled"));
        assert!(problems(&[("role", "renderer")]).contains("renderer.cores"));
        assert_eq!(problems(&[("role", "renderer"), ("renderer.cores", "core:1,[::1]:2,10.0.0.1:3")]), "");
        assert!(problems(&[("role", "renderer"), ("renderer.cores", "https://core")]).contains("renderer.cores"));
        assert!(problems(&[("renderer.cores", "core:1")]).contains("renderer.cores"));
    }

    #[test]
    fn plain_text_listener_for_renderers_is_on_loopback_only() {
        let base = [
            ("cluster.enabled", "true"),
            ("database.url", "postgres://grabd@db/grabd"),
            ("secrets.key_file", "/etc/grabd/secrets.key"),
        ];
        let with = |more: &[(&'static str, &str)]| problems(&[&base, more].concat());
        let (ca, cert, key) = (("cluster.ca_file", "ca"), ("cluster.cert_file", "cert"), ("cluster.key_file", "key"));
        let everywhere = ("cluster.listen", "0.0.0.0:50052");
        assert_eq!(with(&[("cluster.listen", "127.0.0.1:50052")]), "");
        assert!(with(&[everywhere]).contains("loopback"));
        assert_eq!(with(&[everywhere, ca, cert, key]), "");
        assert!(with(&[everywhere, ca, cert]).contains("all of ca_file"));
        assert!(with(&[("role", "edge"), ("cluster.listen", "127.0.0.1:1")]).contains("cluster.listen"));
        assert!(with(&[("cluster.listen", "everywhere")]).contains("10.0.0.5:50052"));
    }
}
