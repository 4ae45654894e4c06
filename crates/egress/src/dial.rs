//! Connecting to one of several addresses that are all known to be good.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::Refusal;

/// How long one address may keep the next one waiting (RFC 8305 section 5).
const HEAD_START: Duration = Duration::from_millis(250);

/// Addresses tried of one name. A site with more of them does not need us to go through the list.
const MOST_ADDRESSES: usize = 8;

/// A connection to the first of `addresses` that takes one, without delayed small packets.
pub(crate) async fn dial(addresses: &[IpAddr], port: u16, limit: Duration) -> Result<TcpStream, Refusal> {
    let targets = in_turn(addresses).into_iter().take(MOST_ADDRESSES).map(|address| SocketAddr::new(address, port));
    let connected = match timeout(limit, race(targets.collect())).await {
        Ok(connected) => connected.and_then(|stream| stream.set_nodelay(true).map(|()| stream)),
        Err(_) => return Err(Refusal::TimedOut),
    };
    connected.map_err(|error| {
        // The system gave up before our own limit.
        if error.kind() == io::ErrorKind::TimedOut { Refusal::TimedOut } else { Refusal::ConnectFailed(error.kind()) }
    })
}

/// IPv4 and IPv6 alternately. IPv4 first: a server without a way to IPv6 is common, one without a way to IPv4 is not.
fn in_turn(addresses: &[IpAddr]) -> Vec<IpAddr> {
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
            () = sleep(HEAD_START), if waiting.len() > 0 => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_families_take_turns() {
        let parse = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<IpAddr>>();
        let given = parse(&["::1", "::2", "::3", "10.0.0.1"]);
        assert_eq!(in_turn(&given), parse(&["10.0.0.1", "::1", "::2", "::3"]));
        assert_eq!(in_turn(&parse(&["10.0.0.1", "10.0.0.2", "::1"])), parse(&["10.0.0.1", "::1", "10.0.0.2"]));
    }
}
