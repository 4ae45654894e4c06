//! Connects to one of several checked addresses.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::EgressError;

/// Connection Attempt Delay (RFC 8305 section 5).
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// Most addresses tried per name.
const MAX_ADDRESSES: usize = 8;

/// Connects to the first of `addresses` that accepts, with `TCP_NODELAY` set.
pub(crate) async fn dial(addresses: &[IpAddr], port: u16, limit: Duration) -> Result<TcpStream, EgressError> {
    let targets = interleave(addresses).into_iter().take(MAX_ADDRESSES).map(|address| SocketAddr::new(address, port));
    let connected = match timeout(limit, race(targets.collect())).await {
        Ok(connected) => connected.and_then(|stream| stream.set_nodelay(true).map(|()| stream)),
        Err(_) => return Err(EgressError::TimedOut),
    };
    connected.map_err(|error| {
        // The operating system's timeout was shorter than `limit`.
        if error.kind() == io::ErrorKind::TimedOut {
            EgressError::TimedOut
        } else {
            EgressError::ConnectFailed(error.kind())
        }
    })
}

/// Alternates IPv4 and IPv6, IPv4 first: servers without an IPv6 route are common, servers without an IPv4 route are
/// not.
pub(crate) fn interleave(addresses: &[IpAddr]) -> Vec<IpAddr> {
    let (mut v4, mut v6) =
        (addresses.iter().filter(|address| address.is_ipv4()), addresses.iter().filter(|address| address.is_ipv6()));
    let mut ordered = Vec::with_capacity(addresses.len());
    while ordered.len() < addresses.len() {
        ordered.extend(v4.next());
        ordered.extend(v6.next());
    }
    ordered
}

async fn race(targets: Vec<SocketAddr>) -> io::Result<TcpStream> {
    let mut waiting = targets.into_iter();
    let mut attempts = FuturesUnordered::new();
    let mut failure = io::Error::from(io::ErrorKind::AddrNotAvailable);
    loop {
        match waiting.next() {
            Some(target) => attempts.push(TcpStream::connect(target)),
            None if attempts.is_empty() => return Err(failure),
            None => {}
        }
        tokio::select! {
            Some(attempt) = attempts.next() => match attempt {
                Ok(stream) => return Ok(stream),
                Err(error) => failure = error,
            },
            () = sleep(ATTEMPT_DELAY), if waiting.len() > 0 => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interleave_alternates_families_ipv4_first() {
        let parse = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<IpAddr>>();
        let given = parse(&["::1", "::2", "::3", "10.0.0.1"]);
        assert_eq!(interleave(&given), parse(&["10.0.0.1", "::1", "::2", "::3"]));
        assert_eq!(interleave(&parse(&["10.0.0.1", "10.0.0.2", "::1"])), parse(&["10.0.0.1", "::1", "10.0.0.2"]));
    }
}
