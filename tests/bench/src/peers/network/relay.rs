//! A relay that passes data on after a while, as a network with long distances does.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

/// The most bytes of a part.
const PART_BYTES: usize = 16 << 10;
/// Parts on their way in one direction.
const PARTS: usize = 1024;

/// A running relay. It stops when dropped.
pub(super) struct DelayingRelay {
    pub(super) address: SocketAddr,
    _task: AbortOnDropHandle<()>,
}

impl DelayingRelay {
    /// Listens on a free port of this address, and passes connections on to a server.
    pub(super) async fn start(address: IpAddr, to: SocketAddr, round_trip: Duration) -> io::Result<Self> {
        let listener = TcpListener::bind((address, 0)).await?;
        let address = listener.local_addr()?;
        let task = TaskTracker::new().spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                // The kernel has accepted the connection at once. Over a network, that takes a round trip.
                let open_at = Instant::now() + round_trip;
                connections.spawn(relay(client, to, open_at, round_trip / 2));
            }
        });
        Ok(Self { address, _task: AbortOnDropHandle::new(task) })
    }
}

async fn relay(client: TcpStream, to: SocketAddr, open_at: Instant, delay: Duration) {
    let Ok(server) = TcpStream::connect(to).await else { return };
    if client.set_nodelay(true).and_then(|()| server.set_nodelay(true)).is_err() {
        return;
    }
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    tokio::join!(pass_on(from_client, to_server, open_at, delay), pass_on(from_server, to_client, open_at, delay));
}

/// Passes one direction of a connection on until it ends.
async fn pass_on(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, open_at: Instant, delay: Duration) {
    let (sender, mut receiver) = mpsc::channel::<(Instant, Vec<u8>)>(PARTS);
    let read = async move {
        let mut buffer = vec![0; PART_BYTES];
        while let Ok(length @ 1..) = from.read(&mut buffer).await {
            let arrives_at = Instant::now().max(open_at) + delay;
            if sender.send((arrives_at, buffer[..length].to_vec())).await.is_err() {
                return;
            }
        }
    };
    let write = async move {
        while let Some((arrives_at, part)) = receiver.recv().await {
            sleep_until(arrives_at).await;
            if to.write_all(&part).await.is_err() {
                return;
            }
        }
        // The other side may have closed the connection.
        let _ = to.shutdown().await;
    };
    tokio::join!(read, write);
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[tokio::test]
    async fn first_answer_takes_two_round_trips() {
        let round_trip = Duration::from_millis(20);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let server = listener.local_addr().unwrap();
        let relay = DelayingRelay::start(Ipv4Addr::LOCALHOST.into(), server, round_trip).await.unwrap();
        let began = Instant::now();
        let echo = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut byte = [0];
            stream.read_exact(&mut byte).await.unwrap();
            stream.write_all(&byte).await.unwrap();
            stream
        };
        let ask = async {
            let mut stream = TcpStream::connect(relay.address).await.unwrap();
            stream.write_all(b"a").await.unwrap();
            let mut byte = [0];
            stream.read_exact(&mut byte).await.unwrap();
            byte
        };
        let (_stream, answer) = tokio::join!(echo, ask);
        assert_eq!(&answer, b"a");
        assert!(began.elapsed() >= round_trip * 2, "{:?}", began.elapsed());
    }
}
