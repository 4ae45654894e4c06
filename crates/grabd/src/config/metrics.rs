//! Section `metrics`.

use std::net::SocketAddr;

use serde::Deserialize;

/// Section `metrics`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "default.toml says what each is")]
pub struct Metrics {
    pub listen: SocketAddr,
}
