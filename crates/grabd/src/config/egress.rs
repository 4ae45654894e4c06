//! Section `egress`.

use std::net::SocketAddr;

use ipnet::IpNet;
use serde::Deserialize;

use super::{Problems, lists};

/// Section `egress`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "default.toml says what each is")]
pub struct Egress {
    #[serde(deserialize_with = "lists::list")]
    pub allow_cidrs: Vec<IpNet>,
    #[serde(deserialize_with = "lists::list")]
    pub deny_cidrs: Vec<IpNet>,
    #[serde(deserialize_with = "lists::list")]
    pub dns: Vec<SocketAddr>,
    pub lookup_timeout_ms: u64,
    pub connect_timeout_ms: u64,
}

impl Egress {
    pub(super) fn validate(&self, problems: &mut Problems) {
        problems.at_least_one("egress.lookup_timeout_ms", self.lookup_timeout_ms);
        problems.at_least_one("egress.connect_timeout_ms", self.connect_timeout_ms);
    }
}
