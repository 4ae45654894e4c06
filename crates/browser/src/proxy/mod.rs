//! The forward proxy that is Chromium's only way out, with a listener of its own for every grab.
//!
//! The port a connection came by says which grab it belongs to: Chromium takes no credentials for a proxy. Every
//! request, also a later one on a kept connection, goes through the guard, and what was refused is remembered on the
//! [`Listener`], where the grab's outcome is decided.
//!
//! `doors` says where a listening socket comes from, `connection` serves one connection, `plain` forwards http, `tunnel`
//! answers CONNECT, `target` says what a request asks for, `headers` what travels on, `attempts` what is remembered,
//! `meter` what is counted.
//!
//! *Invariant:* nothing here resolves a name or dials by itself, follows a redirect, or shows Chromium a page of ours:
//! a request that is not forwarded ends as a network error.

mod attempts;
mod connection;
mod doors;
mod headers;
mod listener;
mod meter;
mod plain;
#[cfg(any(test, feature = "fuzzing"))]
pub mod properties;
mod target;
mod tunnel;

use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use grabd_egress::Guard;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(crate) use self::attempts::Attempt;
use self::doors::Doors;
pub(crate) use self::doors::OpenError;
pub(crate) use self::listener::Listener;
use self::listener::Mode;

/// The loopback address of every listener. Nothing else listens on it, so that Chromium can be told to resolve no other.
pub(crate) const ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 99, 0, 1);

/// Where the proxy listens, and how much one grab may use of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// The loopback address of every listener.
    pub(crate) address: Ipv4Addr,
    pub(crate) limits: Limits,
}

/// What one listener, which is one grab, may use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The longest head of a request or a response. At least 8192, the size of the first read.
    pub(crate) header_bytes: usize,
    /// Connections from the browser at a time.
    pub(crate) connections: usize,
    /// Bytes to and from the browser together. Over it, everything of the grab is cut.
    pub(crate) bytes: u64,
    /// The longest one connection from the browser may live, busy or idle.
    pub(crate) connection_seconds: u64,
}

/// Makes listeners. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Proxy {
    guard: Guard,
    limits: Limits,
    doors: Arc<Doors>,
    tasks: TaskTracker,
    shutdown: CancellationToken,
}

impl Default for Options {
    fn default() -> Self {
        Self { address: ADDRESS, limits: Limits::default() }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { header_bytes: 64 << 10, connections: 256, bytes: 200 << 20, connection_seconds: 30 }
    }
}

impl Proxy {
    /// A proxy whose tasks live on `tasks` and end with `shutdown`.
    pub(crate) fn new(guard: Guard, options: Options, tasks: TaskTracker, shutdown: CancellationToken) -> Self {
        let Options { address, limits } = options;
        Self { guard, limits, doors: Arc::new(Doors::Host(address)), tasks, shutdown }
    }

    /// The same for one browser's jail: every listener takes the next of `sockets`, which were bound inside.
    pub(crate) fn inside(&self, sockets: Vec<OwnedFd>) -> Self {
        Self { doors: Arc::new(Doors::Jail(Mutex::new(sockets.into()))), ..self.clone() }
    }

    /// A listener for one grab.
    pub(crate) async fn open(&self) -> Result<Listener, OpenError> {
        self.listen(Mode::Guarded(self.guard.clone())).await
    }

    /// A listener that refuses everything: what arrives there is the browser's own doing, not a page's.
    pub(crate) async fn open_deny(&self) -> Result<Listener, OpenError> {
        self.listen(Mode::Deny).await
    }

    async fn listen(&self, mode: Mode) -> Result<Listener, OpenError> {
        let socket = self.doors.open().await?;
        Ok(Listener::start(socket, mode, self.limits, self.tasks.clone(), self.shutdown.child_token())?)
    }
}

#[cfg(test)]
mod tests;
