//! Limits of a listener and of its connections.

use std::time::Duration;

use ipnet::IpNet;

/// Limits of a listener.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionLimits {
    /// Concurrent connections. Further ones wait in the accept queue, and idle ones are closed.
    pub(crate) connections: usize,
    /// Concurrent connections of one address. Further ones are rejected.
    pub(crate) connections_per_address: usize,
    /// Concurrent connections of one /48 in IPv6, which has 65,536 addresses. Further ones are rejected.
    pub(crate) connections_per_end_site: usize,
    /// Concurrent requests of one address.
    pub(crate) requests_per_address: usize,
    /// Networks of trusted proxies, which serve many clients and are exempt from the limits for one address.
    pub(crate) proxies: Vec<IpNet>,
}

/// How long clients may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// To send a request header, from its first byte or from the start of the connection.
    pub header: Duration,
    /// Between two requests.
    pub idle: Duration,
    /// To read the next part of a response.
    pub answer: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { header: Duration::from_secs(10), idle: Duration::from_secs(60), answer: Duration::from_secs(30) }
    }
}
