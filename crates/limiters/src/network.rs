//! Networks of client addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What is counted as one client: an IPv4 address, or the /64 of an IPv6 address, because one subscriber usually has a
/// whole /64.
pub fn client_network(address: IpAddr) -> IpAddr {
    network(address, 32, 64)
}

/// The end site of a client (RFC 6177): the /24 of an IPv4 address, or the /48 of an IPv6 address, which is what one
/// customer gets.
pub fn end_site(address: IpAddr) -> IpAddr {
    network(address, 24, 48)
}

/// What one operator of networks typically has: a /16 of IPv4, or a /32 of IPv6.
pub(crate) fn allocation(address: IpAddr) -> IpAddr {
    network(address, 16, 32)
}

/// The network of an address with this number of bits. An IPv4 address that is mapped to IPv6 counts as the IPv4 address.
fn network(address: IpAddr, v4_bits: u32, v6_bits: u32) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            Ipv4Addr::from_bits(address.to_bits() & u32::MAX.checked_shl(32 - v4_bits).unwrap_or(0)).into()
        }
        IpAddr::V6(address) => {
            Ipv6Addr::from_bits(address.to_bits() & u128::MAX.checked_shl(128 - v6_bits).unwrap_or(0)).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_of_an_address_have_the_documented_sizes() {
        for (address, client, its_end_site, its_allocation) in [
            ("192.0.2.7", "192.0.2.7", "192.0.2.0", "192.0.0.0"),
            ("::ffff:192.0.2.7", "192.0.2.7", "192.0.2.0", "192.0.0.0"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::", "2001:db8:1::", "2001:db8::"),
            ("2001:db8:2:2:ffff::", "2001:db8:2:2::", "2001:db8:2::", "2001:db8::"),
            ("::", "::", "::", "::"),
        ] {
            let parse = |text: &str| text.parse::<IpAddr>().unwrap();
            let address = parse(address);
            assert_eq!(
                (client_network(address), end_site(address), allocation(address)),
                (parse(client), parse(its_end_site), parse(its_allocation))
            );
        }
    }
}
