//! Section `renderer`.

use serde::Deserialize;

use super::{Problems, ProcessRole, lists};

/// The most cores of one renderer.
const MAX_CORES: usize = 64;

/// Section `renderer`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "default.toml says what each is")]
pub struct Renderer {
    #[serde(deserialize_with = "lists::list")]
    pub cores: Vec<String>,
}

impl Renderer {
    /// The role of the process decides whether there must be cores. `is_enabled`: `cluster.enabled`.
    pub(super) fn validate(&self, role: ProcessRole, is_enabled: bool, problems: &mut Problems) {
        let Self { cores } = self;
        if role == ProcessRole::Renderer {
            if is_enabled {
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
