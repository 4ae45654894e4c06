//! A quota for each client address, and one for its end site.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::time::Instant;

use parking_lot::Mutex;

use crate::buckets::Buckets;
use crate::keyed::MAX_KEYS;
use crate::network::{allocation, client_network, end_site};
use crate::quota::{Quota, Window};

/// How much all addresses of one end site may use together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndSiteQuota {
    /// The number of addresses whose quotas they may use.
    addresses: NonZeroU32,
    /// Whether this applies to the /24 of IPv4 addresses. Neighbours in a /24 are often different customers, so only what
    /// is worth such an attack is limited there.
    in_ipv4: bool,
}

/// A quota of requests for each client address: an IPv4 address, or a /64 in IPv6. Those of one end site share a larger one,
/// since a customer with a /48 has 65,536 of the former. Of 50,000 addresses, those of the end sites with the most are
/// forgotten first.
pub struct AddressLimiter {
    quota: Quota,
    of_end_site: Quota,
    end_sites: EndSiteQuota,
    state: Mutex<State>,
}

struct State {
    addresses: Buckets<IpAddr, IpAddr>,
    end_sites: Buckets<IpAddr, IpAddr>,
}

impl EndSiteQuota {
    /// The usual one, for requests that cost little: ten addresses for each /48 in IPv6.
    pub const USUAL: Self = Self::ipv6(10);

    /// For each /48 in IPv6.
    ///
    /// # Panics
    /// If the number is zero.
    pub const fn ipv6(addresses: u32) -> Self {
        Self { addresses: NonZeroU32::new(addresses).expect("not zero"), in_ipv4: false }
    }

    /// For each /48 in IPv6, and each /24 in IPv4.
    ///
    /// # Panics
    /// If the number is zero.
    pub const fn ipv6_and_ipv4(addresses: u32) -> Self {
        Self { in_ipv4: true, ..Self::ipv6(addresses) }
    }
}

impl AddressLimiter {
    /// At least one request per minute.
    pub fn per_minute(limit: u32, end_sites: EndSiteQuota) -> Self {
        Self::new(Quota::per_minute(limit), end_sites)
    }

    /// At least one request per hour.
    pub fn per_hour(limit: u32, end_sites: EndSiteQuota) -> Self {
        Self::new(Quota::per_hour(limit), end_sites)
    }

    /// A quota for each address, and for each end site.
    pub fn new(quota: Quota, end_sites: EndSiteQuota) -> Self {
        Self::with_max_addresses(quota, end_sites, MAX_KEYS)
    }

    fn with_max_addresses(quota: Quota, end_sites: EndSiteQuota, max_addresses: usize) -> Self {
        let state = State {
            addresses: Buckets::new(max_addresses, |address| end_site(*address)),
            end_sites: Buckets::new(max_addresses, |address| allocation(*address)),
        };
        Self { quota, of_end_site: quota.times(end_sites.addresses), end_sites, state: Mutex::new(state) }
    }

    /// Takes one request from the quotas of an address and its end site. Reports the one with less left.
    ///
    /// # Errors
    /// When one of them is used up. Nothing is taken then.
    pub fn take(&self, address: IpAddr) -> Result<Window, Window> {
        self.take_at(address, Instant::now())
    }

    fn take_at(&self, address: IpAddr, now: Instant) -> Result<Window, Window> {
        let address = client_network(address);
        let its_end_site = (self.end_sites.in_ipv4 || address.is_ipv6()).then(|| end_site(address));
        let mut state = self.state.lock();
        let of_end_site = match its_end_site {
            Some(end_site) => {
                let taken = state.end_sites.take(&end_site, self.of_end_site, now);
                Some(taken.map_err(|wait| Window { of_end_site: true, ..self.of_end_site.refused(wait) })?)
            }
            None => None,
        };
        match state.addresses.take(&address, self.quota, now) {
            Ok(remaining) => match of_end_site.filter(|of_end_site| *of_end_site < remaining) {
                Some(of_end_site) => Ok(Window { of_end_site: true, ..self.of_end_site.admitted(of_end_site) }),
                None => Ok(self.quota.admitted(remaining)),
            },
            Err(wait) => {
                if let Some(end_site) = its_end_site {
                    state.end_sites.give_back(&end_site, self.of_end_site);
                }
                Err(self.quota.refused(wait))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};
    use std::time::Duration;

    use super::*;

    /// The address `host` in the /64 `network` of the /48 `number`.
    fn ipv6(number: u16, network: u16, host: u16) -> IpAddr {
        Ipv6Addr::new(0x2001, 0xdb8, number, network, 0, 0, 0, host).into()
    }

    fn ipv4(network: u8, host: u8) -> IpAddr {
        Ipv4Addr::new(203, 0, network, host).into()
    }

    fn admitted(limiter: &AddressLimiter, addresses: impl Iterator<Item = IpAddr>) -> usize {
        addresses.filter(|address| limiter.take(*address).is_ok()).count()
    }

    #[test]
    fn ipv6_addresses_share_the_quotas_of_their_64_and_their_48() {
        let limiter = AddressLimiter::new(Quota::per_hour(5), EndSiteQuota::ipv6(3));
        assert_eq!(admitted(&limiter, (0..20).map(|host| ipv6(1, 1, host))), 5);
        assert_eq!(admitted(&limiter, (0..=u16::MAX).map(|network| ipv6(1, network, 1))), 10, "15 for the /48");
        let window = limiter.take(ipv6(1, 9, 1)).unwrap_err();
        assert_eq!((window.limit, window.remaining, window.of_end_site), (15, 0, true));
        assert!((239..=240).contains(&window.reset_s), "{window:?}");
        assert_eq!(admitted(&limiter, (0..20).map(|host| ipv6(2, 1, host))), 5, "another /48");
    }

    #[test]
    fn ipv4_addresses_share_the_quota_of_their_24_where_that_is_counted() {
        let all = || (0..=255).map(|host| ipv4(1, host));
        let limiter = AddressLimiter::new(Quota::per_hour(5), EndSiteQuota::ipv6(3));
        assert_eq!(admitted(&limiter, all()), 256);
        let limiter = AddressLimiter::new(Quota::per_hour(5), EndSiteQuota::ipv6_and_ipv4(3));
        assert_eq!((admitted(&limiter, all()), admitted(&limiter, (0..9).map(|_| ipv4(2, 1)))), (15, 5));
    }

    #[test]
    fn refused_requests_of_an_address_take_nothing_from_its_end_site() {
        let limiter = AddressLimiter::new(Quota::per_hour(2), EndSiteQuota::ipv6(2));
        assert_eq!(admitted(&limiter, (0..100).map(|_| ipv6(1, 1, 1))), 2);
        assert_eq!(limiter.take(ipv6(1, 2, 1)).map(|window| (window.limit, window.remaining)), Ok((2, 1)));
        assert_eq!(limiter.take(ipv6(1, 3, 1)).map(|window| (window.limit, window.remaining)), Ok((4, 0)));
        assert!(limiter.take(ipv6(1, 4, 1)).is_err());
    }

    /// 200,000 addresses of one /48, of a /32 and of IPv4: none of them, and no other, is refused before its own quota is
    /// used up.
    #[test]
    fn more_addresses_than_are_stored_refuse_nobody_else() {
        let (limiter, now) = (AddressLimiter::new(Quota::per_hour(2), EndSiteQuota::ipv6(1_000_000)), Instant::now());
        let others = || [ipv4(7, 1), ipv6(0xff, 1, 1)];
        for other in others() {
            limiter.take_at(other, now).unwrap();
            limiter.take_at(other, now).unwrap();
        }
        let one_end_site = (0..=u16::MAX).map(|network| ipv6(1, network, 1));
        let many_end_sites = (0..=u16::MAX).map(|number| ipv6(number, 2, 1));
        let in_ipv4 = (0..=u16::MAX).map(|bits| Ipv4Addr::from_bits(0x0a00_0000 | u32::from(bits)).into());
        for address in one_end_site.chain(many_end_sites).chain(in_ipv4) {
            assert!(limiter.take_at(address, now).is_ok(), "{address}");
            assert!(limiter.state.lock().addresses.len() <= MAX_KEYS);
        }
        for other in others() {
            assert!(limiter.take_at(other, now).is_err(), "{other} was forgotten, although others have the most left");
            assert!(limiter.take_at(other, now + Duration::from_secs(1800)).is_ok());
        }
    }

    #[test]
    fn end_site_with_the_most_addresses_loses_them_first() {
        let end_sites = EndSiteQuota::ipv6(1_000_000);
        let (limiter, now) = (AddressLimiter::with_max_addresses(Quota::per_hour(9), end_sites, 64), Instant::now());
        // Those of the flood have less left than the others.
        for number in 2..10 {
            limiter.take_at(ipv6(number, 1, 1), now).unwrap();
        }
        for network in 0..1000 {
            for _ in 0..5 {
                limiter.take_at(ipv6(1, network, 1), now).unwrap();
            }
        }
        for number in 2..10 {
            let window = limiter.take_at(ipv6(number, 1, 1), now).unwrap();
            assert_eq!(window.remaining, 7, "{number} was forgotten");
        }
    }
}
