//! The guard itself: look up, check everything, dial what was checked.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use grabd_domain::Fault;
use grabd_domain::address::{self, Policy, Refused};
use grabd_domain::target::{self, TargetHost, TargetUrl};
use prometheus_client::registry::Registry;
use tokio::net::TcpStream;
use url::Host;

use crate::Refusal;
use crate::dial::dial;
use crate::lookup::Lookup;
use crate::own::Own;
use crate::refused::RefusedCount;

/// What the operator decides.
#[derive(Clone, Debug)]
pub struct Options {
    /// Addresses allowed and refused beyond the table. This machine's own are added to it.
    pub policy: Policy,
    /// The DNS servers to ask. Empty: those of resolv.conf, as it is at start.
    pub dns: Vec<SocketAddr>,
    /// The longest a lookup may take.
    pub lookup_timeout: Duration,
    /// The longest connecting may take, over all addresses of a name.
    pub connect_timeout: Duration,
}

/// Why there is no guard.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Without the list, a page could reach this machine by its own public address.
    #[error("cannot read the addresses of this machine's interfaces")]
    Interfaces(#[source] io::Error),
}

/// What every outgoing connection passes. Cheap to clone.
#[derive(Clone)]
pub struct Guard {
    inner: Arc<Inner>,
}

struct Inner {
    policy: Policy,
    own: Own,
    lookup: Lookup,
    connect_timeout: Duration,
    refused: RefusedCount,
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
    /// A guard with this machine's own addresses added to the policy.
    ///
    /// Without a DNS server it works for literals, and finds no name.
    ///
    /// # Errors
    /// When the interfaces cannot be read.
    pub fn new(options: Options) -> Result<Self, Error> {
        let Options { mut policy, dns, lookup_timeout, connect_timeout } = options;
        if !policy.allow.is_empty() {
            tracing::warn!(allow = ?policy.allow, "addresses that pages must not reach by default are allowed");
        }
        let own = Own::read().map_err(Error::Interfaces)?;
        policy.own.extend(own.addresses());
        let lookup = Lookup::new(&dns, lookup_timeout);
        let refused = RefusedCount::default();
        Ok(Self { inner: Arc::new(Inner { policy, own, lookup, connect_timeout, refused }) })
    }

    /// The rules in force, with this machine's own addresses as they were at start.
    pub fn policy(&self) -> &Policy {
        &self.inner.policy
    }

    /// The addresses of `host`. Never empty; one refused answer refuses the name.
    ///
    /// # Errors
    /// Any [`Refusal`] but a port's or a failed connection's.
    pub async fn resolve(&self, host: &TargetHost) -> Result<Vec<IpAddr>, Refusal> {
        self.look_up(host).await.inspect_err(|refusal| self.inner.refused.note(refusal))
    }

    /// A connection to one of the addresses of `host`, all of which were checked just now. Small packets go at once.
    ///
    /// # Errors
    /// Any [`Refusal`].
    pub async fn connect(&self, host: &TargetHost, port: u16) -> Result<TcpStream, Refusal> {
        let connected = async {
            address::check_port(port).map_err(|_| Refusal::Port)?;
            let addresses = self.look_up(host).await?;
            dial(&addresses, port, self.inner.connect_timeout).await
        };
        connected.await.inspect_err(|refusal| self.inner.refused.note(refusal))
    }

    /// Is the host of `url` public, as far as that can be said without looking a name up?
    ///
    /// # Errors
    /// [`Fault::SsrfDetected`].
    pub fn check_public(&self, url: &TargetUrl) -> Result<(), Fault> {
        url.check_public(self.policy()).inspect_err(|_| self.note_refused_url())
    }

    /// Counts a URL that was refused by [`Guard::policy`] elsewhere.
    pub fn note_refused_url(&self) {
        self.inner.refused.add("url");
    }

    /// Puts what is counted here into a registry: `egress_refused_total{reason}`.
    pub fn register_metrics(&self, registry: &mut Registry) {
        self.inner.refused.register(registry);
    }

    /// How often something was refused since the start, by reason: those of [`Guard::register_metrics`].
    pub fn refused(&self) -> Vec<(&'static str, u64)> {
        self.inner.refused.all()
    }

    async fn look_up(&self, host: &TargetHost) -> Result<Vec<IpAddr>, Refusal> {
        let addresses = match plain(host)? {
            TargetHost::Address(address) => vec![address],
            TargetHost::Name(name) => self.inner.lookup.addresses(&name).await?,
        };
        for address in &addresses {
            self.check(*address).map_err(|why| Refusal::Address { address: *address, why })?;
        }
        Ok(addresses)
    }

    fn check(&self, address: IpAddr) -> Result<(), Refused> {
        let Inner { policy, own, .. } = &*self.inner;
        address::check_addr(address, policy)?;
        // The policy knows the addresses of the start; interfaces may have got others since.
        match own.contains(address) && !policy.allow.iter().any(|net| net.contains(&address)) {
            true => Err(Refused::Own),
            false => Ok(()),
        }
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("policy", self.policy()).finish_non_exhaustive()
    }
}

/// A host as it will be looked up: a name that is a number in disguise is an address (`127.1`, `0x7f000001`), and a
/// name that cannot be public is refused.
fn plain(host: &TargetHost) -> Result<TargetHost, Refusal> {
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
        Ok(Host::Domain(_)) | Err(_) => Err(Refusal::Name),
    }
}
