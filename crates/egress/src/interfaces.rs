//! Addresses of this machine's interfaces. They are refused even if public: local services may trust their own host.

use std::io;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Addresses change (DHCP, IPv6 privacy addresses). Reading them takes a few microseconds.
const REFRESH: Duration = Duration::from_secs(30);

pub(crate) struct InterfaceAddresses {
    latest: Mutex<Snapshot>,
}

struct Snapshot {
    addresses: Vec<IpAddr>,
    read_at: Instant,
}

impl InterfaceAddresses {
    pub(crate) fn read() -> io::Result<Self> {
        Ok(Self { latest: Mutex::new(Snapshot { addresses: interfaces()?, read_at: Instant::now() }) })
    }

    pub(crate) fn addresses(&self) -> Vec<IpAddr> {
        self.latest.lock().addresses.clone()
    }

    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        let mut latest = self.latest.lock();
        if latest.read_at.elapsed() >= REFRESH {
            latest.read_at = Instant::now();
            match interfaces() {
                Ok(addresses) => latest.addresses = addresses,
                Err(error) => {
                    tracing::warn!(%error, "cannot refresh the interface addresses, keeping the previous list");
                }
            }
        }
        latest.addresses.contains(&address)
    }
}

fn interfaces() -> io::Result<Vec<IpAddr>> {
    let addresses = nix::ifaddrs::getifaddrs()?.filter_map(|interface| {
        let address = interface.address?;
        match (address.as_sockaddr_in(), address.as_sockaddr_in6()) {
            (Some(v4), _) => Some(IpAddr::V4(v4.ip())),
            (None, Some(v6)) => Some(IpAddr::V6(v6.ip())),
            (None, None) => None,
        }
    });
    Ok(addresses.collect())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn interface_addresses_include_loopback() {
        assert!(InterfaceAddresses::read().unwrap().addresses().contains(&IpAddr::V4(Ipv4Addr::LOCALHOST)));
    }

    #[test]
    fn contains_refreshes_an_outdated_snapshot() {
        let snapshot = |age| {
            let read_at = Instant::now().checked_sub(age).unwrap();
            InterfaceAddresses { latest: Mutex::new(Snapshot { addresses: Vec::new(), read_at }) }
        };
        assert!(snapshot(REFRESH).contains(IpAddr::V4(Ipv4Addr::LOCALHOST)));
        assert!(!snapshot(Duration::ZERO).contains(IpAddr::V4(Ipv4Addr::LOCALHOST)));
    }
}
