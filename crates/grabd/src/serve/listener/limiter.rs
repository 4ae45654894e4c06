//! Limits connections and requests, in total, per address, and per end site in IPv6.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use grabd_limiters::{client_network, end_site};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::connection_limits::ConnectionLimits;

/// Counts the connections of a listener.
#[derive(Clone)]
pub(super) struct ConnectionLimiter(Arc<Shared>);

struct Shared {
    limits: ConnectionLimits,
    capacity: Arc<Semaphore>,
    clients: Mutex<Clients>,
}

/// Usage of those with a connection.
#[derive(Default)]
struct Clients {
    addresses: HashMap<IpAddr, Usage>,
    /// Connections of each /48 in IPv6.
    end_sites: HashMap<IpAddr, usize>,
}

/// Usage of one address.
#[derive(Default)]
struct Usage {
    connections: usize,
    requests: usize,
}

/// The permit of one connection. Dropping it releases its capacity.
pub(super) struct ConnectionPermit {
    shared: Arc<Shared>,
    /// `None` behind a proxy, where the client is unknown.
    address: Option<IpAddr>,
    peer: SocketAddr,
    _capacity: OwnedSemaphorePermit,
}

/// The permit of one open request. It keeps the permit of its connection alive.
pub(super) struct RequestPermit(Arc<ConnectionPermit>);

impl ConnectionLimiter {
    pub(super) fn new(limits: ConnectionLimits) -> Self {
        let capacity = Arc::new(Semaphore::new(limits.connections));
        Self(Arc::new(Shared { limits, capacity, clients: Mutex::default() }))
    }

    /// Waits until another connection may be accepted.
    pub(super) async fn acquire_capacity(&self) -> OwnedSemaphorePermit {
        Arc::clone(&self.0.capacity).acquire_owned().await.expect("the semaphore is never closed")
    }

    /// Acquires a permit for a connection, unless its address or its end site has reached the limit.
    pub(super) fn acquire(&self, peer: SocketAddr, capacity: OwnedSemaphorePermit) -> Option<ConnectionPermit> {
        let address = peer.ip().to_canonical();
        let is_proxy = self.0.limits.proxies.iter().any(|network| network.contains(&address));
        let address = (!is_proxy).then(|| client_network(address));
        if let Some(address) = address {
            self.0.clients().connect(address, &self.0.limits)?;
        }
        Some(ConnectionPermit { shared: Arc::clone(&self.0), address, peer, _capacity: capacity })
    }
}

impl Shared {
    fn clients(&self) -> MutexGuard<'_, Clients> {
        self.clients.lock()
    }
}

impl Clients {
    /// Counts a connection. `None` if there are too many.
    fn connect(&mut self, address: IpAddr, limits: &ConnectionLimits) -> Option<()> {
        let of_address = self.addresses.get(&address).map_or(0, |usage| usage.connections);
        let its_end_site = end_site_of(address);
        let of_end_site = its_end_site.and_then(|site| self.end_sites.get(&site)).copied().unwrap_or(0);
        if of_address >= limits.connections_per_address || of_end_site >= limits.connections_per_end_site {
            return None;
        }
        self.addresses.entry(address).or_default().connections += 1;
        if let Some(site) = its_end_site {
            *self.end_sites.entry(site).or_default() += 1;
        }
        Some(())
    }

    fn disconnect(&mut self, address: IpAddr) {
        if let Entry::Occupied(mut usage) = self.addresses.entry(address) {
            usage.get_mut().connections -= 1;
            if usage.get().connections == 0 {
                usage.remove();
            }
        }
        if let Some(site) = end_site_of(address)
            && let Entry::Occupied(mut connections) = self.end_sites.entry(site)
        {
            *connections.get_mut() -= 1;
            if *connections.get() == 0 {
                connections.remove();
            }
        }
    }
}

/// The end site of an address, where those are counted.
fn end_site_of(address: IpAddr) -> Option<IpAddr> {
    address.is_ipv6().then(|| end_site(address))
}

impl ConnectionPermit {
    /// The peer address of the connection.
    pub(super) const fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Whether other connections wait for capacity.
    pub(super) fn is_contended(&self) -> bool {
        self.shared.capacity.available_permits() == 0
    }

    /// Acquires a permit for a request on this connection, unless its address has reached the limit.
    pub(super) fn acquire_request(self: &Arc<Self>) -> Option<RequestPermit> {
        if let Some(address) = self.address {
            let mut clients = self.shared.clients();
            let usage = clients.addresses.entry(address).or_default();
            if usage.requests >= self.shared.limits.requests_per_address {
                return None;
            }
            usage.requests += 1;
        }
        Some(RequestPermit(Arc::clone(self)))
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        if let Some(address) = self.address {
            self.shared.clients().disconnect(address);
        }
    }
}

impl Drop for RequestPermit {
    fn drop(&mut self) {
        if let Some(address) = self.0.address
            && let Some(usage) = self.0.shared.clients().addresses.get_mut(&address)
        {
            usage.requests -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limiter(proxies: &[&str]) -> ConnectionLimiter {
        let proxies = proxies.iter().map(|network| network.parse().unwrap()).collect();
        ConnectionLimiter::new(ConnectionLimits {
            connections: 5,
            connections_per_address: 2,
            connections_per_end_site: 3,
            requests_per_address: 3,
            proxies,
        })
    }

    async fn take(limiter: &ConnectionLimiter, peer: &str) -> Option<Arc<ConnectionPermit>> {
        let capacity = limiter.acquire_capacity().await;
        limiter.acquire(SocketAddr::new(peer.parse().unwrap(), 9), capacity).map(Arc::new)
    }

    #[tokio::test]
    async fn connections_are_limited_per_address_and_released() {
        let limiter = limiter(&[]);
        let (first, second) = (take(&limiter, "192.0.2.1").await, take(&limiter, "::ffff:192.0.2.1").await);
        assert!(first.is_some() && second.is_some());
        assert!(take(&limiter, "192.0.2.1").await.is_none());
        let other = take(&limiter, "192.0.2.2").await;
        assert!(other.is_some());
        drop(first);
        assert!(take(&limiter, "192.0.2.1").await.is_some());
        // One subscriber has a whole /64 in IPv6.
        let six = [take(&limiter, "2001:db8::1").await, take(&limiter, "2001:db8::2").await];
        assert!(six.iter().all(Option::is_some));
        assert!(take(&limiter, "2001:db8::3").await.is_none());
        drop((second, other, six));
        assert!(limiter.0.clients().addresses.is_empty() && limiter.0.clients().end_sites.is_empty());
    }

    #[tokio::test]
    async fn connections_of_a_48_are_limited_together() {
        let limiter = limiter(&[]);
        let mut held = Vec::new();
        for network in 1..=3 {
            held.push(take(&limiter, &format!("2001:db8:7:{network}::1")).await.unwrap());
        }
        assert!(take(&limiter, "2001:db8:7:4::1").await.is_none());
        assert!(take(&limiter, "2001:db8:8:1::1").await.is_some(), "another /48");
        assert!(take(&limiter, "192.0.2.1").await.is_some());
        held.pop();
        assert!(take(&limiter, "2001:db8:7:4::1").await.is_some());
    }

    #[tokio::test]
    async fn requests_are_limited_over_all_connections_of_an_address() {
        let limiter = limiter(&[]);
        let (a, b) = (take(&limiter, "192.0.2.1").await.unwrap(), take(&limiter, "192.0.2.1").await.unwrap());
        let requests = [a.acquire_request(), a.acquire_request(), b.acquire_request()];
        assert!(requests.iter().all(Option::is_some) && b.acquire_request().is_none());
        drop(requests);
        assert!(b.acquire_request().is_some());
    }

    #[tokio::test]
    async fn only_the_total_limit_applies_behind_a_proxy() {
        let limiter = limiter(&["192.0.2.0/24"]);
        let mut permits = Vec::new();
        for _ in 0..5 {
            assert!(permits.last().is_none_or(|permit: &Arc<ConnectionPermit>| !permit.is_contended()));
            permits.push(take(&limiter, "192.0.2.1").await.unwrap());
        }
        assert!(permits[0].is_contended());
        let requests: Vec<_> = (0..10).map(|_| permits[0].acquire_request()).collect();
        assert!(requests.iter().all(Option::is_some));
        assert!(limiter.0.clients().addresses.is_empty());
    }
}
