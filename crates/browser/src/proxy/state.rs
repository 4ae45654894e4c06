//! The state that all connections of one listener share.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use grabd_domain::address::AddressError;
use grabd_egress::{EgressError, Guard};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::listener_limits::Limits;
use super::meter::Meter;
use super::target::Destination;
use super::unreached::UnreachedTargets;
use crate::blocklists::Blocklist;

/// State shared by the connections of one listener.
pub(super) struct ListenerState {
    mode: Mode,
    address: SocketAddr,
    pub(super) limits: Limits,
    pub(super) meter: Arc<Meter>,
    pub(super) unreached: UnreachedTargets,
    pub(super) blocklist: OnceLock<Arc<Blocklist>>,
    tasks: TaskTracker,
    closed: CancellationToken,
}

/// How requests are handled.
pub(super) enum Mode {
    Guarded(Guard),
    Deny,
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
    /// The state of the listener at `address`. Cancelling `closed` closes it and all of its connections.
    pub(super) fn new(
        mode: Mode,
        address: SocketAddr,
        limits: Limits,
        tasks: TaskTracker,
        closed: CancellationToken,
    ) -> Self {
        Self {
            mode,
            address,
            limits,
            meter: Arc::new(Meter::new(limits.bytes, closed.clone())),
            unreached: UnreachedTargets::default(),
            blocklist: OnceLock::new(),
            tasks,
            closed,
        }
    }

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

    pub(super) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Runs `work` until it ends or the listener closes.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let closed = self.closed.clone();
        self.tasks.spawn(async move { closed.run_until_cancelled(work).await });
    }
}
