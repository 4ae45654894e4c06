//! The guard: resolve, check every address, connect to a checked address.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use grabd_domain::Fault;
use grabd_domain::address::{self, AddressError, Policy};
use grabd_domain::target::{self, TargetHost, TargetUrl};
use prometheus_client::registry::Registry;
use tokio::net::TcpStream;
use url::Host;

use crate::EgressError;
use crate::dial::dial;
use crate::interfaces::InterfaceAddresses;
use crate::lookup::Lookup;
use crate::metrics::RefusalCounters;

/// Configuration of the guard.
#[derive(Clone, Debug)]
pub struct Options {
    /// Addresses allowed and refused in addition to the table. This machine's own addresses are added to it.
    pub policy: Policy,
    /// DNS servers. If empty, those of resolv.conf as read at start.
    pub dns: Vec<SocketAddr>,
    /// Limit of one lookup.
    pub lookup_timeout: Duration,
    /// Limit of connecting, over all addresses of a name.
    pub connect_timeout: Duration,
}

/// Why a guard could not be created.
#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    /// Without this list, a page could reach this machine by its public address.
    #[error("cannot read the addresses of this machine's interfaces")]
    Interfaces(#[source] io::Error),
}

/// Checks and makes outgoing connections. Cheap to clone.
#[derive(Clone)]
pub struct Guard {
    inner: Arc<Inner>,
}

struct Inner {
    policy: Policy,
    interfaces: InterfaceAddresses,
    lookup: Lookup,
    connect_timeout: Duration,
    refused: RefusalCounters,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            policy: Policy::default(),
            dns: Vec::new(),
            lookup_timeout: Duration::from_secs(2),
            connect_timeout: Duration::from_secs(5),
        }
    }
}

impl Guard {
    /// Creates a guard and adds this machine's own addresses to the policy.
    ///
    /// Without a DNS server only IP literals resolve.
    ///
    /// # Errors
    /// If the interfaces cannot be read.
    pub fn new(options: Options) -> Result<Self, GuardError> {
        let Options { mut policy, dns, lookup_timeout, connect_timeout } = options;
        if !policy.allow.is_empty() {
            tracing::warn!(allow = ?policy.allow, "the allow list permits addresses that are refused by default");
        }
        let interfaces = InterfaceAddresses::read().map_err(GuardError::Interfaces)?;
        policy.own.extend(interfaces.addresses());
        let lookup = Lookup::new(&dns, lookup_timeout);
        let refused = RefusalCounters::default();
        Ok(Self { inner: Arc::new(Inner { policy, interfaces, lookup, connect_timeout, refused }) })
    }

    /// The policy in force, with this machine's own addresses as of start.
    pub fn policy(&self) -> &Policy {
        &self.inner.policy
    }

    /// Resolves `host`. The result is never empty. A name is refused if any of its addresses is.
    ///
    /// # Errors
    /// Any [`EgressError`] except `Port` and `ConnectFailed`.
    pub async fn resolve(&self, host: &TargetHost) -> Result<Vec<IpAddr>, EgressError> {
        self.look_up(host).await.inspect_err(|error| self.inner.refused.record(error))
    }

    /// Resolves `host`, checks all of its addresses and connects to one of them, with `TCP_NODELAY` set.
    ///
    /// # Errors
    /// Any [`EgressError`].
    pub async fn connect(&self, host: &TargetHost, port: u16) -> Result<TcpStream, EgressError> {
        let addresses = self.check_target(host, port).await?;
        dial(&addresses, port, self.inner.connect_timeout).await
    }

    /// Resolves `host`, and checks the port and all of its addresses, without connecting.
    pub(crate) async fn check_target(&self, host: &TargetHost, port: u16) -> Result<Vec<IpAddr>, EgressError> {
        let checked = async {
            address::check_port(port).map_err(|_| EgressError::Port)?;
            self.look_up(host).await
        };
        checked.await.inspect_err(|error| self.inner.refused.record(error))
    }

    /// Checks that the host of `url` is public, without looking up names.
    ///
    /// # Errors
    /// [`Fault::SsrfDetected`].
    pub fn check_public(&self, url: &TargetUrl) -> Result<(), Fault> {
        url.check_public(self.policy()).inspect_err(|_| self.record_refused_url())
    }

    /// Counts a URL that was refused elsewhere by [`Guard::policy`].
    pub fn record_refused_url(&self) {
        self.inner.refused.increment("url");
    }

    /// Registers `egress_refused_total{reason}`.
    pub fn register_metrics(&self, registry: &mut Registry) {
        self.inner.refused.register(registry);
    }

    /// The refusals since start by reason, as in [`Guard::register_metrics`].
    pub fn refused_counts(&self) -> Vec<(&'static str, u64)> {
        self.inner.refused.counts()
    }

    async fn look_up(&self, host: &TargetHost) -> Result<Vec<IpAddr>, EgressError> {
        let localhost = match host {
            TargetHost::Name(name) => self.localhost(name),
            TargetHost::Address(_) => Vec::new(),
        };
        if !localhost.is_empty() {
            return Ok(localhost);
        }
        let addresses = match normalize(host)? {
            TargetHost::Address(address) => vec![address],
            TargetHost::Name(name) => self.inner.lookup.addresses(&name).await?,
        };
        for address in &addresses {
            self.check(*address).map_err(|why| EgressError::Address { address: *address, why })?;
        }
        Ok(addresses)
    }

    /// The allowed addresses of a name that stands for this machine. Nothing is looked up for it.
    fn localhost(&self, name: &str) -> Vec<IpAddr> {
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        if target::is_localhost(&name) { self.policy().localhost() } else { Vec::new() }
    }

    fn check(&self, address: IpAddr) -> Result<(), AddressError> {
        let Inner { policy, interfaces, .. } = &*self.inner;
        address::check_addr(address, policy)?;
        // The policy has the addresses as of start. Interfaces may have changed since.
        match interfaces.contains(address) && !policy.allow.iter().any(|net| net.contains(&address)) {
            true => Err(AddressError::Own),
            false => Ok(()),
        }
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("policy", self.policy()).finish_non_exhaustive()
    }
}

/// Normalizes a host. Names in a numeric notation (`127.1`, `0x7f000001`) become addresses; local and malformed names
/// are refused.
fn normalize(host: &TargetHost) -> Result<TargetHost, EgressError> {
    let name = match host {
        TargetHost::Address(address) => return Ok(TargetHost::Address(*address)),
        TargetHost::Name(name) => name.strip_suffix('.').unwrap_or(name),
    };
    match Host::parse(name) {
        Ok(Host::Ipv4(address)) => Ok(TargetHost::Address(address.into())),
        Ok(Host::Ipv6(address)) => Ok(TargetHost::Address(address.into())),
        Ok(Host::Domain(name)) if target::is_well_formed_name(&name) && !target::is_local_name(&name) => {
            Ok(TargetHost::Name(name))
        }
        Ok(Host::Domain(_)) | Err(_) => Err(EgressError::Name),
    }
}
