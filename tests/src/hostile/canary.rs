//! Listeners that nobody may reach: one port for every channel, so that a hit says by which channel it came, whatever it
//! speaks.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::Channel;

/// Ports that are tried until one is free for TCP and UDP alike.
const ATTEMPTS: u32 = 50;

/// A visitor that says nothing was counted when it came.
const READ_LIMIT: Duration = Duration::from_secs(2);

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nAccess-Control-Allow-Origin: *\r\n\
    Content-Length: 45\r\nConnection: close\r\n\r\n<!doctype html><title>canary</title><p>canary";

/// One canary for each of some channels. They end when this is dropped.
pub struct Canaries {
    addresses: BTreeMap<&'static str, SocketAddr>,
    hits: watch::Sender<BTreeMap<&'static str, usize>>,
    _stop: DropGuard,
}

impl Canaries {
    /// Starts them.
    ///
    /// # Errors
    /// When a port cannot be had.
    pub async fn start<'a>(channels: impl IntoIterator<Item = &'a Channel>) -> io::Result<Self> {
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        let hits = watch::Sender::default();
        let mut addresses = BTreeMap::new();
        for channel in channels {
            let (tcp, udp) = bind(channel.at).await?;
            addresses.insert(channel.name, tcp.local_addr()?);
            let streams = count_streams(tcp, channel.name, hits.clone(), tasks.clone());
            let datagrams = count_datagrams(udp, channel.name, hits.clone());
            tasks.spawn(stop.clone().run_until_cancelled_owned(streams));
            tasks.spawn(stop.clone().run_until_cancelled_owned(datagrams));
        }
        Ok(Self { addresses, hits, _stop: stop.drop_guard() })
    }

    /// Where a channel's canary listens.
    ///
    /// # Panics
    /// When the channel is not among those it was started with.
    pub fn address(&self, channel: &str) -> SocketAddr {
        *self.addresses.get(channel).unwrap_or_else(|| panic!("{channel} has no canary"))
    }

    /// Channels whose canary was hit, with how often.
    pub fn hits(&self) -> BTreeMap<&'static str, usize> {
        self.hits.borrow().clone()
    }

    /// Waits until all these were hit, but not longer than `limit`; those that were not.
    pub async fn missing(&self, channels: &[&'static str], limit: Duration) -> Vec<&'static str> {
        let missing = |hits: &BTreeMap<_, _>| {
            channels.iter().copied().filter(|channel| !hits.contains_key(channel)).collect::<Vec<_>>()
        };
        let mut hits = self.hits.subscribe();
        // Whether all came or the time is over: what is missing is told below.
        let _ = timeout(limit, hits.wait_for(|hits| missing(hits).is_empty())).await;
        missing(&self.hits.borrow())
    }
}

async fn bind(at: IpAddr) -> io::Result<(TcpListener, UdpSocket)> {
    let mut attempt = 1;
    loop {
        let tcp = TcpListener::bind((at, 0)).await?;
        match UdpSocket::bind(tcp.local_addr()?).await {
            Ok(udp) => return Ok((tcp, udp)),
            Err(error) if attempt == ATTEMPTS => return Err(error),
            Err(_) => attempt += 1,
        }
    }
}

type Hits = watch::Sender<BTreeMap<&'static str, usize>>;

fn count(hits: &Hits, channel: &'static str) {
    hits.send_modify(|hits| *hits.entry(channel).or_default() += 1);
}

async fn count_streams(listener: TcpListener, channel: &'static str, hits: Hits, tasks: TaskTracker) {
    while let Ok((stream, _)) = listener.accept().await {
        count(&hits, channel);
        tasks.spawn(answer(stream));
    }
}

/// Something that browsers take for a page, so that a navigation that gets here ends here.
async fn answer(mut stream: TcpStream) {
    let read = timeout(READ_LIMIT, stream.read(&mut [0; 4096])).await;
    if let Ok(Ok(1..)) = read {
        // A visitor that does not wait for it was counted all the same.
        let _ = stream.write_all(ANSWER).await;
    }
}

async fn count_datagrams(socket: UdpSocket, channel: &'static str, hits: Hits) {
    while socket.recv(&mut [0; 64]).await.is_ok() {
        count(&hits, channel);
    }
}
