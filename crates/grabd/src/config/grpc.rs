//! Section `grpc`.

use std::net::SocketAddr;

use serde::Deserialize;

use super::Problems;

/// Section `grpc`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "default.toml says what each is")]
pub struct Grpc {
    pub listen: SocketAddr,
    pub connections_per_address: usize,
    pub calls_per_address: usize,
    pub reflection: bool,
}

impl Grpc {
    pub(super) fn validate(&self, problems: &mut Problems) {
        problems.at_least_one("grpc.connections_per_address", self.connections_per_address as u64);
        problems.at_least_one("grpc.calls_per_address", self.calls_per_address as u64);
    }
}
