//! Whose request it is when no team is recognised: the address of the client, seen through the proxies we trust.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use axum::extract::{ConnectInfo, Request};
use http::HeaderMap;
use ipnet::IpNet;

const FORWARDED_FOR: &str = "x-forwarded-for";

/// The address to count a request under. A request without a peer address is counted with all others of its kind.
pub fn of_client(request: &Request, trusted: &[IpNet]) -> IpAddr {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let peer = peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |ConnectInfo(peer)| peer.ip().to_canonical());
    subscriber(forwarded(peer, request.headers(), trusted))
}

/// The right-most address that no trusted proxy vouches away; what stands left of it is the client's own invention.
fn forwarded(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> IpAddr {
    let is_trusted = |address: IpAddr| trusted.iter().any(|network| network.contains(&address));
    let mut client = peer;
    let lines = headers.get_all(FORWARDED_FOR).iter().rev();
    let mut claims = lines.flat_map(|line| line.to_str().unwrap_or_default().rsplit(','));
    while is_trusted(client) {
        match claims.next().and_then(parse) {
            Some(claimed) => client = claimed,
            None => break,
        }
    }
    client
}

/// An address as proxies write it: bare, or with a port.
fn parse(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let bare = text.parse::<IpAddr>().or_else(|_| text.parse::<SocketAddr>().map(|address| address.ip()));
    bare.ok().map(|address| address.to_canonical())
}

/// What is counted for an address: one subscriber holds a whole /64 of IPv6 addresses.
pub fn subscriber(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn the_rightmost_untrusted_address_counts() {
        let trusted: Vec<IpNet> = ["10.0.0.0/8", "fd00::/8"].iter().map(|net| net.parse().unwrap()).collect();
        let cases: [(&str, &[&str], &str); 12] = [
            ("192.0.2.1", &[], "192.0.2.1"),
            ("192.0.2.1", &["198.51.100.1"], "192.0.2.1"),
            ("10.0.0.1", &[], "10.0.0.1"),
            ("10.0.0.1", &["198.51.100.1"], "198.51.100.1"),
            ("10.0.0.1", &["203.0.113.9, 198.51.100.1"], "198.51.100.1"),
            ("10.0.0.1", &["203.0.113.9,198.51.100.1 , 10.2.3.4"], "198.51.100.1"),
            ("10.0.0.1", &["203.0.113.9", "198.51.100.1", "10.2.3.4"], "198.51.100.1"),
            ("10.0.0.1", &["198.51.100.1:4711"], "198.51.100.1"),
            ("10.0.0.1", &["[2001:db8::1]:4711"], "2001:db8::1"),
            ("10.0.0.1", &["198.51.100.1, unknown"], "10.0.0.1"),
            ("10.0.0.1", &["10.0.0.2"], "10.0.0.2"),
            ("fd00::1", &["::ffff:198.51.100.1"], "198.51.100.1"),
        ];
        for (peer, lines, expected) in cases {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(FORWARDED_FOR, HeaderValue::from_static(line));
            }
            let client = forwarded(peer.parse().unwrap(), &headers, &trusted);
            assert_eq!(client, expected.parse::<IpAddr>().unwrap(), "{peer} {lines:?}");
        }
    }

    #[test]
    fn ipv6_is_counted_by_network() {
        for (address, expected) in [
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
            ("2001:db8:1:2:ffff::", "2001:db8:1:2::"),
            ("2001:db8:1:3::", "2001:db8:1:3::"),
            ("192.0.2.1", "192.0.2.1"),
        ] {
            assert_eq!(subscriber(address.parse().unwrap()), expected.parse::<IpAddr>().unwrap());
        }
    }
}
