//! This machine's own addresses. A service that trusts its own host is not for strangers, whatever number it has.

use std::io;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Addresses come and go (DHCP, IPv6 privacy addresses); reading them takes some microseconds.
const REFRESH: Duration = Duration::from_secs(30);

pub(crate) struct Own {
    latest: Mutex<Reading>,
}

struct Reading {
    addresses: Vec<IpAddr>,
    taken: Instant,
}

impl Own {
    pub(crate) fn read() -> io::Result<Self> {
        Ok(Self { latest: Mutex::new(Reading { addresses: interfaces()?, taken: Instant::now() }) })
    }

    pub(crate) fn addresses(&self) -> Vec<IpAddr> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner).addresses.clone()
    }

    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if latest.taken.elapsed() >= REFRESH {
            latest.taken = Instant::now();
            match interfaces() {
                Ok(addresses) => latest.addresses = addresses,
                Err(error) => {
                    tracing::warn!(%error, "cannot read the interface addresses again, keeping the last list");
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
    fn the_loopback_address_is_among_them() {
        assert!(Own::read().unwrap().addresses().contains(&IpAddr::V4(Ipv4Addr::LOCALHOST)));
    }

    #[test]
    fn an_old_list_is_read_again() {
        let own = |age| {
            let taken = Instant::now().checked_sub(age).unwrap();
            Own { latest: Mutex::new(Reading { addresses: Vec::new(), taken }) }
        };
        assert!(own(REFRESH).contains(IpAddr::V4(Ipv4Addr::LOCALHOST)));
        assert!(!own(Duration::ZERO).contains(IpAddr::V4(Ipv4Addr::LOCALHOST)));
    }
}
