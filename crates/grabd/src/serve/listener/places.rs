//! Who may have how many connections and requests.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Bounds;

/// All places of a listener.
#[derive(Clone)]
pub(super) struct Places(Arc<Shared>);

struct Shared {
    bounds: Bounds,
    room: Arc<Semaphore>,
    /// Addresses with a connection.
    addresses: Mutex<HashMap<IpAddr, Held>>,
}

/// What one address holds.
#[derive(Default)]
struct Held {
    connections: usize,
    requests: usize,
}

/// The place of one connection, free again when dropped.
pub(super) struct Place {
    shared: Arc<Shared>,
    /// None behind a proxy, where nobody knows whose connection it is.
    address: Option<IpAddr>,
    peer: SocketAddr,
    _room: OwnedSemaphorePermit,
}

/// A request that is under way. Its connection cannot end before it.
pub(super) struct Asked(Arc<Place>);

impl Places {
    pub(super) fn new(bounds: Bounds) -> Self {
        let room = Arc::new(Semaphore::new(bounds.connections));
        Self(Arc::new(Shared { bounds, room, addresses: Mutex::default() }))
    }

    /// Waits until one more connection may be accepted.
    pub(super) async fn room(&self) -> OwnedSemaphorePermit {
        Arc::clone(&self.0.room).acquire_owned().await.expect("the room is never closed")
    }

    /// A place for a connection, unless its address has all it may have.
    pub(super) fn take(&self, peer: SocketAddr, room: OwnedSemaphorePermit) -> Option<Place> {
        let address = peer.ip().to_canonical();
        let is_proxy = self.0.bounds.proxies.iter().any(|network| network.contains(&address));
        let address = (!is_proxy).then(|| grabd_edge::subscriber(address));
        if let Some(address) = address {
            let mut addresses = self.0.addresses();
            let held = addresses.entry(address).or_default();
            if held.connections >= self.0.bounds.connections_per_address {
                return None;
            }
            held.connections += 1;
        }
        Some(Place { shared: Arc::clone(&self.0), address, peer, _room: room })
    }
}

impl Shared {
    fn addresses(&self) -> MutexGuard<'_, HashMap<IpAddr, Held>> {
        self.addresses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Whose it is, as the connection says.
    pub(super) const fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Do others wait for a place?
    pub(super) fn is_wanted(&self) -> bool {
        self.shared.room.available_permits() == 0
    }

    /// A request on this connection, unless its address has all it may have.
    pub(super) fn ask(self: &Arc<Self>) -> Option<Asked> {
        if let Some(address) = self.address {
            let mut addresses = self.shared.addresses();
            let held = addresses.entry(address).or_default();
            if held.requests >= self.shared.bounds.requests_per_address {
                return None;
            }
            held.requests += 1;
        }
        Some(Asked(Arc::clone(self)))
    }

    fn give_back(&self, one: impl FnOnce(&mut Held)) {
        let Some(address) = self.address else { return };
        if let Entry::Occupied(mut held) = self.shared.addresses().entry(address) {
            one(held.get_mut());
            if held.get().connections == 0 {
                held.remove();
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.give_back(|held| held.connections -= 1);
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.0.give_back(|held| held.requests -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(proxies: &[&str]) -> Places {
        let proxies = proxies.iter().map(|network| network.parse().unwrap()).collect();
        Places::new(Bounds { connections: 5, connections_per_address: 2, requests_per_address: 3, proxies })
    }

    async fn take(places: &Places, peer: &str) -> Option<Arc<Place>> {
        let room = places.room().await;
        places.take(SocketAddr::new(peer.parse().unwrap(), 9), room).map(Arc::new)
    }

    #[tokio::test]
    async fn an_address_has_its_connections_and_leaves_nothing_behind() {
        let places = places(&[]);
        let (first, second) = (take(&places, "192.0.2.1").await, take(&places, "::ffff:192.0.2.1").await);
        assert!(first.is_some() && second.is_some());
        assert!(take(&places, "192.0.2.1").await.is_none());
        let other = take(&places, "192.0.2.2").await;
        assert!(other.is_some());
        drop(first);
        assert!(take(&places, "192.0.2.1").await.is_some());
        // One subscriber has a whole network of IPv6.
        let six = [take(&places, "2001:db8::1").await, take(&places, "2001:db8::2").await];
        assert!(six.iter().all(Option::is_some));
        assert!(take(&places, "2001:db8::3").await.is_none());
        drop((second, other, six));
        assert!(places.0.addresses().is_empty());
    }

    #[tokio::test]
    async fn requests_are_counted_over_all_connections_of_an_address() {
        let places = places(&[]);
        let (a, b) = (take(&places, "192.0.2.1").await.unwrap(), take(&places, "192.0.2.1").await.unwrap());
        let asked = [a.ask(), a.ask(), b.ask()];
        assert!(asked.iter().all(Option::is_some) && b.ask().is_none());
        drop(asked);
        assert!(b.ask().is_some());
    }

    #[tokio::test]
    async fn behind_a_proxy_only_the_room_counts() {
        let places = places(&["192.0.2.0/24"]);
        let mut held = Vec::new();
        for _ in 0..5 {
            assert!(held.last().is_none_or(|place: &Arc<Place>| !place.is_wanted()));
            held.push(take(&places, "192.0.2.1").await.unwrap());
        }
        assert!(held[0].is_wanted());
        let asked: Vec<_> = (0..10).map(|_| held[0].ask()).collect();
        assert!(asked.iter().all(Option::is_some));
        assert!(places.0.addresses().is_empty());
    }
}
