//! The addresses and ports that grabd may connect to for a caller.
//!
//! The table follows the IANA special-purpose registries of IPv4 and IPv6, plus cloud platform addresses in public
//! ranges. For IPv6 the default is to refuse: only allocated global unicast (`2000::/3`) can be public, except for the
//! rows inside it. IPv6 addresses that embed an IPv4 address (mapped, NAT64, 6to4, Teredo) are refused without
//! unwrapping: no site needs one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

/// Refused IPv4 prefixes, with the document that reserves them.
const REFUSED_V4: [(&str, &str); 17] = [
    ("0.0.0.0/8", "this network (RFC 791)"),
    ("10.0.0.0/8", "private (RFC 1918)"),
    ("100.64.0.0/10", "shared address space (RFC 6598)"),
    ("127.0.0.0/8", "loopback (RFC 1122)"),
    ("168.63.129.16/32", "cloud host platform"),
    ("169.254.0.0/16", "link local (RFC 3927)"),
    ("172.16.0.0/12", "private (RFC 1918)"),
    ("192.0.0.0/24", "IETF protocol assignments (RFC 6890)"),
    ("192.0.2.0/24", "documentation (RFC 5737)"),
    ("192.88.99.0/24", "6to4 relay (RFC 7526)"),
    ("192.168.0.0/16", "private (RFC 1918)"),
    ("198.18.0.0/15", "benchmarking (RFC 2544)"),
    ("198.51.100.0/24", "documentation (RFC 5737)"),
    ("203.0.113.0/24", "documentation (RFC 5737)"),
    ("224.0.0.0/4", "multicast (RFC 5771)"),
    ("240.0.0.0/4", "reserved (RFC 1112)"),
    ("255.255.255.255/32", "broadcast (RFC 919)"),
];

/// The only IPv6 space that is allocated as global unicast.
const GLOBAL_V6: &str = "2000::/3";

/// Refused prefixes inside `2000::/3`.
const REFUSED_V6: [(&str, &str); 5] = [
    ("2001::/23", "IETF protocol assignments, Teredo, ORCHID (RFC 2928)"),
    ("2001:db8::/32", "documentation (RFC 3849)"),
    ("2002::/16", "6to4 (RFC 3056)"),
    ("3ffe::/16", "former 6bone (RFC 3701)"),
    ("3fff::/20", "documentation (RFC 9637)"),
];

/// Refused ports: those that Chromium restricts, and common unauthenticated backends.
#[rustfmt::skip]
const REFUSED_PORTS: [u16; 97] = [
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109,
    110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531,
    532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060,
    5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
    2375, 2376, 2379, 2380, 3306, 5432, 5672, 6379, 9200, 9300, 10250, 11211, 27017, 50051,
];

/// The operator's rules and this machine's own addresses.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// Allowed prefixes. They override all other rules. For tests and closed networks; logged as a warning at start.
    pub allow: Vec<IpNet>,
    /// Prefixes refused in addition to the table.
    pub deny: Vec<IpNet>,
    /// Addresses of this machine's interfaces.
    pub own: Vec<IpAddr>,
}

impl Policy {
    /// The loopback addresses that `localhost` stands for, if the operator allows them. It is refused otherwise, as every
    /// name of this machine.
    pub fn localhost(&self) -> Vec<IpAddr> {
        let loopback = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
        loopback.into_iter().filter(|address| self.allow.iter().any(|net| net.contains(address))).collect()
    }
}

/// Why an address or a port is refused. For logs and metrics; never shown to callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// In a reserved range of the table.
    #[error("address is {0}")]
    Reserved(&'static str),
    /// Outside allocated global unicast.
    #[error("address is outside allocated IPv6 space")]
    NotGlobal,
    /// An address of this machine.
    #[error("address is this machine's own")]
    Own,
    /// In the operator's deny list.
    #[error("address is in the operator's deny list")]
    Denied,
    /// A refused port.
    #[error("port is not allowed")]
    Port,
}

/// Checks whether connecting to `address` is allowed.
///
/// # Errors
/// The rule that refuses it.
pub fn check_addr(address: IpAddr, policy: &Policy) -> Result<(), AddressError> {
    if policy.allow.iter().any(|net| net.contains(&address)) {
        return Ok(());
    }
    if policy.deny.iter().any(|net| net.contains(&address)) {
        return Err(AddressError::Denied);
    }
    if policy.own.contains(&address) {
        return Err(AddressError::Own);
    }
    let rows: &[(&str, &'static str)] = match address {
        IpAddr::V4(_) => &REFUSED_V4,
        IpAddr::V6(_) => &REFUSED_V6,
    };
    match rows.iter().find(|(prefix, _)| contains(prefix, address)) {
        Some((_, why)) => Err(AddressError::Reserved(why)),
        None if address.is_ipv6() && !contains(GLOBAL_V6, address) => Err(AddressError::NotGlobal),
        None => Ok(()),
    }
}

/// Checks whether connecting to `port` is allowed.
///
/// # Errors
/// [`AddressError::Port`].
pub fn check_port(port: u16) -> Result<(), AddressError> {
    match REFUSED_PORTS.contains(&port) {
        true => Err(AddressError::Port),
        false => Ok(()),
    }
}

fn contains(prefix: &str, address: IpAddr) -> bool {
    prefix.parse::<IpNet>().is_ok_and(|net| net.contains(&address))
}

/// Returns whether the address is in the well-known NAT64 prefix, which DNS64 resolvers use.
pub fn is_nat64(address: Ipv6Addr) -> bool {
    contains("64:ff9b::/96", IpAddr::V6(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_parses() {
        for (prefix, _) in REFUSED_V4.iter().chain(&REFUSED_V6) {
            assert!(prefix.parse::<IpNet>().is_ok(), "{prefix}");
        }
        assert!(GLOBAL_V6.parse::<IpNet>().is_ok());
    }

    /// The last address before, the first, the last and the next one after every refused prefix.
    #[test]
    fn both_edges_of_every_row() {
        let refused = |text: &str| check_addr(text.parse().unwrap(), &Policy::default()).is_err();
        for inside in [
            "0.0.0.0",
            "0.255.255.255",
            "10.0.0.0",
            "10.255.255.255",
            "100.64.0.0",
            "100.127.255.255",
            "127.0.0.0",
            "127.255.255.255",
            "168.63.129.16",
            "169.254.0.0",
            "169.254.169.254",
            "169.254.255.255",
            "172.16.0.0",
            "172.31.255.255",
            "192.0.0.0",
            "192.0.0.9",
            "192.0.0.255",
            "192.0.2.0",
            "192.0.2.255",
            "192.88.99.0",
            "192.88.99.255",
            "192.168.0.0",
            "192.168.255.255",
            "198.18.0.0",
            "198.19.255.255",
            "198.51.100.0",
            "198.51.100.255",
            "203.0.113.0",
            "203.0.113.255",
            "224.0.0.0",
            "239.255.255.255",
            "240.0.0.0",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:8.8.8.8",
            "::127.0.0.1",
            "::ffff:0:127.0.0.1",
            "64:ff9b::",
            "64:ff9b::7f00:1",
            "64:ff9b:1::",
            "64:ff9b:1:ffff:ffff:ffff:ffff:ffff",
            "100::1",
            "100:0:0:1::1",
            "1fff:ffff::1",
            "2001::",
            "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff",
            "2001:db8::",
            "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff",
            "2002::",
            "2002:ffff:ffff::1",
            "3ffe::",
            "3ffe:ffff::1",
            "3fff::",
            "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff",
            "4000::",
            "5f00::1",
            "fc00::",
            "fd00:ec2::254",
            "fdff::1",
            "fe80::",
            "febf::1",
            "fec0::1",
            "ff00::",
            "ff02::1",
            "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        ] {
            assert!(refused(inside), "{inside} must be refused");
        }
        for outside in [
            "1.0.0.0",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "168.63.129.15",
            "168.63.129.17",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "191.255.255.255",
            "192.0.1.0",
            "192.0.1.255",
            "192.0.3.0",
            "192.31.196.1",
            "192.52.193.1",
            "192.88.98.255",
            "192.88.100.0",
            "192.167.255.255",
            "192.169.0.0",
            "192.175.48.1",
            "198.17.255.255",
            "198.20.0.0",
            "198.51.99.255",
            "198.51.101.0",
            "203.0.112.255",
            "203.0.114.0",
            "223.255.255.255",
            "93.184.216.34",
            "2000::",
            "2001:200::",
            "2001:db7:ffff::1",
            "2001:db9::",
            "2003::",
            "2606:4700:4700::1111",
            "2620:4f:8000::1",
            "3ffd:ffff::1",
            "3fff:1000::",
            "3fff:ffff::1",
        ] {
            assert!(!refused(outside), "{outside} must be allowed");
        }
    }

    #[test]
    fn allow_list_overrides_other_rules_without_unwrapping_mapped_addresses() {
        let policy = Policy {
            allow: vec!["127.0.0.2/32".parse().unwrap()],
            deny: vec!["93.184.216.0/24".parse().unwrap(), "127.0.0.2/32".parse().unwrap()],
            own: vec!["93.184.217.1".parse().unwrap()],
        };
        let check = |text: &str| check_addr(text.parse().unwrap(), &policy);
        assert_eq!(check("127.0.0.2"), Ok(()));
        assert_eq!(check("127.0.0.1"), Err(AddressError::Reserved("loopback (RFC 1122)")));
        assert_eq!(check("::ffff:127.0.0.2"), Err(AddressError::NotGlobal));
        assert_eq!(check("93.184.216.34"), Err(AddressError::Denied));
        assert_eq!(check("93.184.217.1"), Err(AddressError::Own));
    }

    #[test]
    fn check_port_allows_web_ports_only() {
        for port in [80, 443, 3000, 8000, 8080, 8443, 65535] {
            assert_eq!(check_port(port), Ok(()), "{port}");
        }
        for port in [0, 22, 25, 6000, 6379, 10080, 27017] {
            assert_eq!(check_port(port), Err(AddressError::Port), "{port}");
        }
    }
}
