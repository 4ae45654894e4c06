//! One listening socket and its connections, which serve one grab.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use grabd_domain::address::AddressError;
use grabd_egress::{EgressError, Guard};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::meter::Meter;
use super::target::Destination;
use super::unreached::{UnreachedTarget, UnreachedTargets};
use super::{Limits, connection};
use crate::lists::Blocklist;

/// The listener of one grab. Dropping it closes the socket and all connections.
pub(crate) struct Listener {
    state: Arc<ListenerState>,
    _closes: DropGuard,
}

/// State shared by the connections of one listener.
pub(super) struct ListenerState {
    mode: Mode,
    address: SocketAddr,
    pub(super) limits: Limits,
    pub(super) meter: Meter,
    unreached: UnreachedTargets,
    blocklist: OnceLock<Arc<Blocklist>>,
    tasks: TaskTracker,
    closed: CancellationToken,
}

/// How requests are handled.
pub(super) enum Mode {
    Guarded(Guard),
    Deny,
}

impl Listener {
    pub(super) fn start(
        socket: TcpListener,
        mode: Mode,
        limits: Limits,
        tasks: TaskTracker,
        closed: CancellationToken,
    ) -> io::Result<Self> {
        let address = socket.local_addr()?;
        let meter = Meter::new(limits.bytes, closed.clone());
        let state = ListenerState {
            mode,
            address,
            limits,
            meter,
            unreached: UnreachedTargets::default(),
            blocklist: OnceLock::new(),
            tasks,
            closed: closed.clone(),
        };
        let state = Arc::new(state);
        state.spawn(Arc::clone(&state).accept(socket));
        Ok(Self { state, _closes: closed.drop_guard() })
    }

    pub(crate) fn port(&self) -> u16 {
        self.state.port()
    }

    /// The first recorded targets that were requested and not reached, in order.
    pub(crate) fn unreached(&self) -> Vec<UnreachedTarget> {
        self.state.unreached.listed()
    }

    /// Number of requests that the guard refused. Failed connections do not count.
    pub(crate) fn refused_count(&self) -> u32 {
        self.state.unreached.refused_count()
    }

    /// Whether the guard refused this host and port. The host may have brackets, a trailing dot or capitals.
    pub(crate) fn was_refused(&self, host: &str, port: u16) -> bool {
        self.state.unreached.was_refused(host, port)
    }

    /// Sets what the grab blocks, once. Its lists refuse hosts in addition to the guard.
    pub(crate) fn set_blocklist(&self, blocklist: Arc<Blocklist>) {
        // A listener serves one grab, whose second attempt in the same tab blocks the same.
        let _ = self.state.blocklist.set(blocklist);
    }

    /// What the grab blocks. `None` if that is nothing.
    pub(crate) fn blocklist(&self) -> Option<&Arc<Blocklist>> {
        self.state.blocklist.get()
    }

    /// Bytes to and from the browser so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.state.meter.bytes()
    }

    /// Whether the connections were closed because the grab exceeded its byte limit.
    pub(crate) fn over_limit(&self) -> bool {
        self.state.meter.over_limit()
    }
}

impl Mode {
    /// Who made the request. Requests outside of a grab's context come from the browser itself, and are unexpected.
    fn requester(&self) -> &'static str {
        match self {
            Self::Guarded(_) => "page",
            Self::Deny => "browser",
        }
    }
}

impl ListenerState {
    /// Whether a filter list refuses `destination`. Counts it if so. It is not recorded as unreached, since that would be
    /// a failure of the page.
    pub(super) fn is_listed(&self, destination: &Destination) -> bool {
        self.blocklist.get().is_some_and(|list| list.refuses_host(&destination.host.to_string()))
    }

    /// Connects to `destination` through the guard. Failures are recorded.
    pub(super) async fn dial(&self, destination: &Destination) -> Result<TcpStream, EgressError> {
        let outcome = match &self.mode {
            Mode::Guarded(guard) => guard
                .connect(&destination.host, destination.port)
                .await
                .and_then(|stream| self.check_not_own_address(stream)),
            Mode::Deny => Err(EgressError::Name),
        };
        outcome.inspect_err(|refusal| self.unreached.record(self.mode.requester(), self.port(), destination, refusal))
    }

    /// Prevents a loop where the operator allows loopback: a request to the proxy itself.
    fn check_not_own_address(&self, stream: TcpStream) -> Result<TcpStream, EgressError> {
        let peer = stream.peer_addr().map_err(|error| EgressError::ConnectFailed(error.kind()))?;
        match peer.ip() == self.address.ip() {
            true => Err(EgressError::Address { address: peer.ip(), why: AddressError::Own }),
            false => Ok(stream),
        }
    }

    fn port(&self) -> u16 {
        self.address.port()
    }

    /// Runs `work` until it ends or the listener closes.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let closed = self.closed.clone();
        self.tasks.spawn(async move { closed.run_until_cancelled(work).await });
    }

    async fn accept(self: Arc<Self>, socket: TcpListener) {
        let permits = Arc::new(Semaphore::new(self.limits.connections));
        loop {
            let stream = match socket.accept().await {
                Ok((stream, _)) => stream,
                // The client disconnected before it was accepted.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                // Most likely out of descriptors. Ends the listener, to avoid a busy loop. The grab fails.
                Err(error) => return tracing::warn!(proxy.port = self.port(), %error, "a grab's listener failed"),
            };
            let Ok(permit) = Arc::clone(&permits).try_acquire_owned() else {
                tracing::debug!(proxy.port = self.port(), "a grab opened too many connections");
                continue;
            };
            let state = Arc::clone(&self);
            self.spawn(async move {
                let time_limit = Duration::from_secs(state.limits.connection_seconds);
                if timeout(time_limit, connection::serve(stream, Arc::clone(&state))).await.is_err() {
                    tracing::debug!(proxy.port = state.port(), "a connection exceeded its time limit");
                }
                drop(permit);
            });
        }
    }
}
