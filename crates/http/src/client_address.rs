//! The client address, resolved through trusted proxies. Requests without a recognised team are rate limited by it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use axum::extract::{ConnectInfo, Request};
use grabd_limiters::client_network;
use http::HeaderMap;
use ipnet::IpNet;

const FORWARDED_FOR: &str = "x-forwarded-for";

/// The address to count a request under: the /64 network for IPv6. All requests without a peer address share one.
pub fn client_address(request: &Request, trusted: &[IpNet]) -> IpAddr {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let peer = peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |ConnectInfo(peer)| peer.ip().to_canonical());
    client_network(forwarded(peer, request.headers(), trusted))
}

/// The right-most address that is not a trusted proxy. Addresses left of it can be forged by the client.
fn forwarded(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> IpAddr {
    let is_trusted = |address: IpAddr| trusted.iter().any(|network| network.contains(&address));
    let mut client = peer;
    let lines = headers.get_all(FORWARDED_FOR).iter().rev();
    let mut hops = lines.flat_map(|line| line.to_str().unwrap_or_default().rsplit(','));
    while is_trusted(client) {
        match hops.next().and_then(parse) {
            Some(hop) => client = hop,
            None => break,
        }
    }
    client
}

/// Parses an address with or without a port, as proxies write it.
fn parse(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let bare = text.parse::<IpAddr>().or_else(|_| text.parse::<SocketAddr>().map(|address| address.ip()));
    bare.ok().map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn forwarded_returns_the_rightmost_untrusted_address() {
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
}
