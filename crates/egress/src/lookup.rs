//! From a name to its addresses, without anything of this machine's own making: no hosts file, no search list.

use std::convert::identity;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use futures::future::{Either, select};
use grabd_domain::address;
use hickory_resolver::config::{NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts};
use hickory_resolver::name_server::TokioConnectionProvider;
use hickory_resolver::proto::ProtoErrorKind;
use hickory_resolver::proto::rr::Name;
use hickory_resolver::proto::xfer::Protocol;
use hickory_resolver::{ResolveError, TokioResolver, system_conf};
use tokio::time::error::Elapsed;
use tokio::time::timeout;

use crate::Refusal;

/// Names whose answers are remembered, each for no longer than its own time to live.
const CACHED_RECORDS: usize = 1024;

/// The longest an answer is remembered. The server behind us keeps the long-lived ones.
const CACHED_FOR: Duration = Duration::from_secs(60);

/// How long an A answer waits for AAAA: some servers drop that question, and every connection would wait for its end.
const V6_GRACE: Duration = Duration::from_millis(150);

pub(crate) struct Lookup {
    /// None without a server: then no name has an address.
    resolver: Option<TokioResolver>,
    limit: Duration,
}

impl Lookup {
    /// Asks `servers`, or those of resolv.conf when none are given.
    pub(crate) fn new(servers: &[SocketAddr], limit: Duration) -> Self {
        let servers = if servers.is_empty() { system_servers() } else { plain(servers) };
        let resolver = (!servers.is_empty()).then(|| {
            // From parts, without a domain or a search list.
            let config = ResolverConfig::from_parts(None, Vec::new(), servers);
            let mut builder = TokioResolver::builder_with_config(config, TokioConnectionProvider::default());
            *builder.options_mut() = options(limit);
            builder.build()
        });
        Self { resolver, limit }
    }

    /// The A and AAAA answers for `name`, which is taken as fully qualified. Never empty, and not checked.
    pub(crate) async fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, Refusal> {
        let Some(resolver) = &self.resolver else { return Err(Refusal::Unresolved) };
        let Ok(mut name) = Name::from_ascii(name) else { return Err(Refusal::Unresolved) };
        name.set_fqdn(true);
        let v4 = Box::pin(timeout(self.limit, resolver.ipv4_lookup(name.clone())));
        let v6 = Box::pin(timeout(self.limit, resolver.ipv6_lookup(name)));
        let (v4, v6) = match select(v4, v6).await {
            Either::Left((v4 @ Ok(Ok(_)), v6)) => (v4, timeout(V6_GRACE, v6).await.and_then(identity)),
            Either::Left((v4, v6)) => (v4, v6.await),
            Either::Right((v6, v4)) => (v4.await, v6),
        };
        let v4 = answers(v4).map(|found| found.iter().map(|a| a.0).collect::<Vec<_>>());
        let v6 = answers(v6).map(|found| found.iter().map(|aaaa| aaaa.0).collect::<Vec<_>>());
        let timed_out = [v4.as_ref().err(), v6.as_ref().err()].contains(&Some(&Refusal::TimedOut));
        let (v4, mut v6) = (v4.unwrap_or_default(), v6.unwrap_or_default());
        // On a DNS64 network every name gets such an answer; where a real one exists, the made-up one says nothing.
        if !v4.is_empty() {
            v6.retain(|address| !address::is_nat64(*address));
        }
        let found: Vec<IpAddr> = v4.into_iter().map(IpAddr::V4).chain(v6.into_iter().map(IpAddr::V6)).collect();
        match found.is_empty() {
            false => Ok(found),
            true if timed_out => Err(Refusal::TimedOut),
            true => Err(Refusal::Unresolved),
        }
    }
}

fn answers<T>(outcome: Result<Result<T, ResolveError>, Elapsed>) -> Result<T, Refusal> {
    match outcome {
        Ok(Ok(found)) => Ok(found),
        Ok(Err(error)) if error.proto().is_some_and(|e| matches!(e.kind(), ProtoErrorKind::Timeout)) => {
            Err(Refusal::TimedOut)
        }
        Ok(Err(error)) => {
            tracing::debug!(%error, "a lookup gave no address");
            Err(Refusal::Unresolved)
        }
        Err(_) => Err(Refusal::TimedOut),
    }
}

fn options(limit: Duration) -> ResolverOpts {
    let mut options = ResolverOpts::default();
    // A lost packet is asked for once more within the limit.
    options.timeout = limit / 2;
    options.attempts = 1;
    options.cache_size = CACHED_RECORDS;
    options.positive_max_ttl = Some(CACHED_FOR);
    options.negative_max_ttl = Some(CACHED_FOR);
    options.use_hosts_file = ResolveHosts::Never;
    options
}

fn system_servers() -> Vec<NameServerConfig> {
    match system_conf::read_system_conf() {
        Ok((config, _)) => config.name_servers().to_vec(),
        Err(error) => {
            tracing::warn!(%error, "no DNS server is configured, so names will not resolve");
            Vec::new()
        }
    }
}

fn plain(servers: &[SocketAddr]) -> Vec<NameServerConfig> {
    // TCP is for answers too long for UDP.
    let protocols = [Protocol::Udp, Protocol::Tcp];
    servers.iter().flat_map(|server| protocols.map(|protocol| NameServerConfig::new(*server, protocol))).collect()
}
