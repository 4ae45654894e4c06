//! A second address of a service: `http://localhost` and a port that is known before the service starts. Browsers allow
//! passkeys for `localhost`, but not for the address on which tests start a service.

use std::net::SocketAddr;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

/// A listener that is not forwarded yet.
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
