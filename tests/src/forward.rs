//! TCP forwarders: a second address of a service, and connections that a test can interrupt.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

/// `http://localhost` and a port that is known before the service starts. Browsers allow passkeys for `localhost`, but not
/// for the address on which tests start a service.
pub struct LocalOrigin {
    listener: TcpListener,
    port: u16,
}

impl LocalOrigin {
    /// Listens on a free port.
    ///
    /// # Errors
    /// If there is none.
    pub async fn listen() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        Ok(Self { listener, port })
    }

    /// The origin.
    pub fn origin(&self) -> String {
        format!("http://localhost:{}", self.port)
    }

    /// Forwards all connections to a service, until the result is dropped.
    pub fn forward(self, to: SocketAddr) -> AbortOnDropHandle<()> {
        AbortOnDropHandle::new(TaskTracker::new().spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((mut client, _)) = self.listener.accept().await {
                connections.spawn(async move {
                    if let Ok(mut service) = TcpStream::connect(to).await {
                        // Either side may close the connection at any time.
                        let _ = copy_bidirectional(&mut client, &mut service).await;
                    }
                });
            }
        }))
    }
}

/// Size of the parts that are forwarded.
const PART_BYTES: usize = 16 << 10;

/// A network link to a service, which a test can interrupt. It ends when dropped.
pub struct Link {
    address: SocketAddr,
    is_up: watch::Sender<bool>,
    _task: AbortOnDropHandle<()>,
}

impl Link {
    /// A link to this address.
    ///
    /// # Errors
    /// If no port is free.
    pub async fn to(service: SocketAddr) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (is_up, link) = watch::channel(true);
        let task = TaskTracker::new().spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                connections.spawn(connect(client, service, link.clone()));
                while connections.try_join_next().is_some() {}
            }
        });
        Ok(Self { address, is_up, _task: AbortOnDropHandle::new(task) })
    }

    /// The address that leads to the service.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Interrupts the link like a network that drops all packets: connections stay open, and nothing arrives.
    pub fn interrupt(&self) {
        self.is_up.send_replace(false);
    }

    /// Ends the interruption. What was sent meanwhile arrives.
    pub fn restore(&self) {
        self.is_up.send_replace(true);
    }
}

async fn connect(client: TcpStream, service: SocketAddr, mut link: watch::Receiver<bool>) {
    if link.wait_for(|is_up| *is_up).await.is_err() {
        return;
    }
    let Ok(server) = TcpStream::connect(service).await else { return };
    for stream in [&client, &server] {
        let _ = stream.set_nodelay(true);
    }
    let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
    // Each direction ends on its own, as on a network.
    tokio::join!(forward(from_client, to_server, link.clone()), forward(from_server, to_client, link));
}

/// Forwards until either side closes the connection.
async fn forward(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    mut link: watch::Receiver<bool>,
) {
    let mut part = vec![0; PART_BYTES];
    loop {
        let read = from.read(&mut part).await.unwrap_or(0);
        // Also for the end of the connection, which is a packet, too.
        if link.wait_for(|is_up| *is_up).await.is_err() {
            return;
        }
        if read == 0 || to.write_all(&part[..read]).await.is_err() {
            let _ = to.shutdown().await;
            return;
        }
    }
}
