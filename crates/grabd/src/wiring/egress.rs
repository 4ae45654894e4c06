//! The guard of all outgoing connections.

use std::time::Duration;

use anyhow::Context;
use grabd_domain::address::Policy;
use grabd_egress::Guard;

use crate::config::Config;

/// The guard for every outgoing connection.
///
/// # Errors
/// When the resolver cannot be set up.
pub fn guard(config: &Config) -> anyhow::Result<Guard> {
    let egress = &config.egress;
    let policy = Policy { allow: egress.allow_cidrs.clone(), deny: egress.deny_cidrs.clone(), own: Vec::new() };
    let options = grabd_egress::Options {
        policy,
        dns: egress.dns.clone(),
        lookup_timeout: Duration::from_millis(egress.lookup_timeout_ms),
        connect_timeout: Duration::from_millis(egress.connect_timeout_ms),
    };
    Guard::new(options).context("the egress guard cannot be set up")
}
