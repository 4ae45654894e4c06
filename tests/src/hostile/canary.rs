//! Listeners that no page may reach, one port per channel, so that a hit identifies its channel whatever protocol it
//! uses.

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

/// Attempts to find a port that is free for both TCP and UDP.
const ATTEMPTS: u32 = 50;

/// Time limit for reading the request. The hit was counted on connect.
const READ_LIMIT: Duration = Duration::from_secs(2);

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nAccess-Control-Allow-Origin: *\r\n\
    Content-Length: 45\r\nConnection: close\r\n\r\n<!doctype html><title>canary</title><p>canary";

/// One canary per channel. They stop when dropped.
pub struct Canaries {
    addresses: BTreeMap<&'static str, SocketAddr>,
    hits: watch::Sender<BTreeMap<&'static str, usize>>,
    _stop: DropGuard,
}

impl Canaries {
    /// Starts one canary for each channel.
    ///
    /// # Errors
    /// If a port cannot be bound.
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

    /// The address of a channel's canary.
    ///
    /// # Panics
    /// If the channel has no canary.
    pub fn address(&self, channel: &str) -> SocketAddr {
        *self.addresses.get(channel).unwrap_or_else(|| panic!("{channel} has no canary"))
    }

    /// Hits per channel.
    pub fn hits(&self) -> BTreeMap<&'static str, usize> {
        self.hits.borrow().clone()
    }

    /// Waits up to `limit` until all these channels were hit. Returns those that were not.
    pub async fn missing(&self, channels: &[&'static str], limit: Duration) -> Vec<&'static str> {
        let missing = |hits: &BTreeMap<_, _>| {
            channels.iter().copied().filter(|channel| !hits.contains_key(channel)).collect::<Vec<_>>()
        };
        let mut hits = self.hits.subscribe();
        // A timeout is not an error: the missing channels are returned.
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

/// Sends a page, so that a navigation to a canary ends there.
async fn answer(mut stream: TcpStream) {
    let read = timeout(READ_LIMIT, stream.read(&mut [0; 4096])).await;
    if let Ok(Ok(1..)) = read {
        // The client may have disconnected. It was counted anyway.
        let _ = stream.write_all(ANSWER).await;
    }
}

async fn count_datagrams(socket: UdpSocket, channel: &'static str, hits: Hits) {
    while socket.recv(&mut [0; 64]).await.is_ok() {
        count(&hits, channel);
    }
}
