//! Provides listening sockets.

use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener as StdTcpListener};
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};

use tokio::net::TcpListener;

/// Connections that wait to be accepted.
const BACKLOG: i32 = 1024;

/// Why a listener cannot be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    /// An I/O error.
    #[error("the egress proxy cannot listen: {0}")]
    Listen(#[from] io::Error),
    /// All sockets of this browser's jail have been used.
    #[error("the jail has no unused socket left")]
    Exhausted,
}

/// Where listening sockets come from.
pub(super) enum SocketSource {
    /// New sockets on this loopback address of the host, without limit.
    Host(Ipv4Addr),
    /// Sockets that were bound inside a jail when it was created. Each is used once: a late connection to the port of
    /// one grab must not be attributed to another.
    Jail(Mutex<VecDeque<OwnedFd>>),
}

impl SocketSource {
    /// Returns an unused socket, which listens.
    pub(super) async fn open(&self) -> Result<TcpListener, OpenError> {
        match self {
            Self::Host(address) => Ok(TcpListener::bind(SocketAddrV4::new(*address, 0)).await?),
            Self::Jail(bound) => {
                let socket = bound.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                let socket = StdTcpListener::from(socket.ok_or(OpenError::Exhausted)?);
                socket.set_nonblocking(true)?;
                rustix::net::listen(&socket, BACKLOG).map_err(io::Error::from)?;
                Ok(TcpListener::from_std(socket)?)
            }
        }
    }
}
