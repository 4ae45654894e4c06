//! Resolves names over DNS only: no hosts file, no search list.

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

use crate::EgressError;

/// Cache capacity in records. Each record is cached for at most its TTL.
const CACHED_RECORDS: usize = 1024;

/// Upper bound for the cached TTL. The upstream resolver caches long-lived records.
const CACHED_FOR: Duration = Duration::from_secs(60);

/// How long to wait for AAAA after A has arrived. Some servers drop AAAA queries, and every connection would wait for
/// the timeout.
const V6_GRACE: Duration = Duration::from_millis(150);

pub(crate) struct Lookup {
    /// `None` if no DNS server is configured. Then every name is unresolved.
    resolver: Option<TokioResolver>,
    limit: Duration,
}

impl Lookup {
    /// Queries `servers`, or those of resolv.conf if `servers` is empty.
    pub(crate) fn new(servers: &[SocketAddr], limit: Duration) -> Self {
        let servers = if servers.is_empty() { system_servers() } else { name_servers(servers) };
        let resolver = (!servers.is_empty()).then(|| {
            // No domain and no search list.
            let config = ResolverConfig::from_parts(None, Vec::new(), servers);
            let mut builder = TokioResolver::builder_with_config(config, TokioConnectionProvider::default());
            *builder.options_mut() = options(limit);
            builder.build()
        });
        Self { resolver, limit }
    }

    /// The A and AAAA records of `name`, which is taken as fully qualified. Never empty. The addresses are not checked.
    pub(crate) async fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, EgressError> {
        let Some(resolver) = &self.resolver else { return Err(EgressError::Unresolved) };
        let Ok(mut name) = Name::from_ascii(name) else { return Err(EgressError::Unresolved) };
        name.set_fqdn(true);
        let v4 = Box::pin(timeout(self.limit, resolver.ipv4_lookup(name.clone())));
        let v6 = Box::pin(timeout(self.limit, resolver.ipv6_lookup(name)));
        let (v4, v6) = match select(v4, v6).await {
            Either::Left((v4 @ Ok(Ok(_)), v6)) => (v4, timeout(V6_GRACE, v6).await.and_then(identity)),
            Either::Left((v4, v6)) => (v4, v6.await),
            Either::Right((v6, v4)) => (v4.await, v6),
        };
        let v4 = records(v4).map(|found| found.iter().map(|a| a.0).collect::<Vec<_>>());
        let v6 = records(v6).map(|found| found.iter().map(|aaaa| aaaa.0).collect::<Vec<_>>());
        let timed_out = [v4.as_ref().err(), v6.as_ref().err()].contains(&Some(&EgressError::TimedOut));
        let (v4, mut v6) = (v4.unwrap_or_default(), v6.unwrap_or_default());
        // DNS64 synthesizes an AAAA record for every IPv4 name. It is redundant if an A record exists.
        if !v4.is_empty() {
            v6.retain(|address| !address::is_nat64(*address));
        }
        let found: Vec<IpAddr> = v4.into_iter().map(IpAddr::V4).chain(v6.into_iter().map(IpAddr::V6)).collect();
        match found.is_empty() {
            false => Ok(found),
            true if timed_out => Err(EgressError::TimedOut),
            true => Err(EgressError::Unresolved),
        }
    }
}

fn records<T>(outcome: Result<Result<T, ResolveError>, Elapsed>) -> Result<T, EgressError> {
    match outcome {
        Ok(Ok(found)) => Ok(found),
        Ok(Err(error)) if error.proto().is_some_and(|e| matches!(e.kind(), ProtoErrorKind::Timeout)) => {
            Err(EgressError::TimedOut)
        }
        Ok(Err(error)) => {
            tracing::debug!(%error, "lookup failed");
            Err(EgressError::Unresolved)
        }
        Err(_) => Err(EgressError::TimedOut),
    }
}

fn options(limit: Duration) -> ResolverOpts {
    let mut options = ResolverOpts::default();
    // Leaves time for one retransmission within the limit.
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
            tracing::warn!(%error, "no DNS server is configured, names will not resolve");
            Vec::new()
        }
    }
}

fn name_servers(servers: &[SocketAddr]) -> Vec<NameServerConfig> {
    // TCP is used for responses that do not fit in UDP.
    let protocols = [Protocol::Udp, Protocol::Tcp];
    servers.iter().flat_map(|server| protocols.map(|protocol| NameServerConfig::new(*server, protocol))).collect()
}
