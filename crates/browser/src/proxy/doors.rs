//! Where a listener's socket comes from.

use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener as StdTcpListener};
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};

use tokio::net::TcpListener;

/// Connections that wait to be accepted.
const BACKLOG: i32 = 1024;

/// Why there is no listener.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    /// The system has none.
    #[error("the egress proxy cannot listen: {0}")]
    Listen(#[from] io::Error),
    /// All sockets of this browser's jail have been used.
    #[error("the jail has no unused socket left")]
    UsedUp,
}

/// A source of sockets.
pub(super) enum Doors {
    /// New ones on this loopback address of the host, without end.
    Host(Ipv4Addr),
    /// Those that were bound inside a jail when it was made. Each is taken out once and never put back: what comes late
    /// by the port of one grab must not be taken for a part of another.
    Jail(Mutex<VecDeque<OwnedFd>>),
}

impl Doors {
    /// A socket that nobody used before, listening from now on.
    pub(super) async fn open(&self) -> Result<TcpListener, OpenError> {
        match self {
            Self::Host(address) => Ok(TcpListener::bind(SocketAddrV4::new(*address, 0)).await?),
            Self::Jail(bound) => {
                let socket = bound.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                let socket = StdTcpListener::from(socket.ok_or(OpenError::UsedUp)?);
                socket.set_nonblocking(true)?;
                rustix::net::listen(&socket, BACKLOG).map_err(io::Error::from)?;
                Ok(TcpListener::from_std(socket)?)
            }
        }
    }
}
