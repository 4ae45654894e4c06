//! The forward proxy that is Chromium's only way out, with a listener for every grab.
//!
//! The port of a connection identifies its grab, since Chromium sends no credentials to a proxy. Every request,
//! including later ones on a persistent connection, goes through the guard. Refused targets are recorded on the
//! [`Listener`], from which the outcome of the grab is derived.
//!
//! `sockets` provides listening sockets. `listener` accepts connections, which share a `state`. `connection` serves one
//! connection, whose requests share a `session`. `plain` forwards http, `tunnel` answers CONNECT. `target` parses the
//! request target. `headers` selects the fields to forward. `unreached` records failed targets. `meter` counts bytes up
//! to the `limits`. `crate::blocklists` can refuse further hosts, for one grab. All connections of a grab can go
//! through a proxy of its team, which is set for the listener of that grab alone.
//!
//! *Invariant:* nothing here resolves a name or connects without the guard, follows a redirect, or returns a page of
//! its own: a request that is not forwarded ends as a network error.

mod connection;
mod headers;
mod listener;
mod listener_limits;
mod meter;
mod plain;
#[cfg(any(test, feature = "fuzzing"))]
pub mod properties;
mod session;
mod sockets;
mod state;
mod target;
mod tunnel;
mod unreached;

use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use grabd_egress::Guard;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(crate) use self::listener::Listener;
use self::listener_limits::Limits;
pub(crate) use self::sockets::OpenError;
use self::sockets::SocketSource;
use self::state::Mode;
pub(crate) use self::unreached::UnreachedTarget;

/// The address of every listener. Nothing else listens on it, so it is the only address Chromium may resolve.
pub(crate) const ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 99, 0, 1);

/// Where the proxy listens, and the limits of each grab.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// The loopback address of every listener.
    pub(crate) address: Ipv4Addr,
    pub(crate) limits: Limits,
}

/// Opens listeners. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Proxy {
    guard: Guard,
    limits: Limits,
    sockets: Arc<SocketSource>,
    tasks: TaskTracker,
    shutdown: CancellationToken,
}

impl Default for Options {
    fn default() -> Self {
        Self { address: ADDRESS, limits: Limits::default() }
    }
}

impl Proxy {
    /// Creates a proxy whose tasks run on `tasks` and end on `shutdown`.
    pub(crate) fn new(guard: Guard, options: Options, tasks: TaskTracker, shutdown: CancellationToken) -> Self {
        let Options { address, limits } = options;
        Self { guard, limits, sockets: Arc::new(SocketSource::Host(address)), tasks, shutdown }
    }

    /// The proxy for one browser's jail. Every listener takes the next of `sockets`, which were bound inside the jail.
    pub(crate) fn inside(&self, sockets: Vec<OwnedFd>) -> Self {
        Self { sockets: Arc::new(SocketSource::Jail(Mutex::new(sockets.into()))), ..self.clone() }
    }

    /// Opens a listener for one grab.
    pub(crate) async fn open(&self) -> Result<Listener, OpenError> {
        self.listen(Mode::Guarded(self.guard.clone())).await
    }

    /// Opens a listener that refuses everything. Requests to it come from the browser itself, not from a page.
    pub(crate) async fn open_deny(&self) -> Result<Listener, OpenError> {
        self.listen(Mode::Deny).await
    }

    async fn listen(&self, mode: Mode) -> Result<Listener, OpenError> {
        let socket = self.sockets.open().await?;
        Ok(Listener::start(socket, mode, self.limits, self.tasks.clone(), self.shutdown.child_token())?)
    }
}

#[cfg(test)]
mod tests;
