//! The state that all connections of one listener share.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use grabd_domain::address::AddressError;
use grabd_domain::proxies::{ProxyProblem, ProxyRoute};
use grabd_egress::{ClientTls, EgressError, EgressStream, Guard, Tunnel};
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
    /// The proxy of the team that all connections go through. Unset: they are direct.
    pub(super) upstream: OnceLock<Upstream>,
    /// What was wrong with that proxy when it was last used. `None`: it worked.
    upstream_problem: Mutex<Option<ProxyProblem>>,
    tasks: TaskTracker,
    closed: CancellationToken,
}

/// A proxy of the team.
pub(super) struct Upstream {
    pub(super) route: Arc<ProxyRoute>,
    pub(super) tls: ClientTls,
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
            upstream: OnceLock::new(),
            upstream_problem: Mutex::default(),
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
    pub(super) async fn dial(&self, destination: &Destination) -> Result<EgressStream, EgressError> {
        let outcome = match (&self.mode, self.upstream.get()) {
            (Mode::Guarded(guard), None) => guard
                .connect(&destination.host, destination.port)
                .await
                .and_then(|stream| self.check_not_own_address(stream))
                .map(EgressStream::Plain),
            (Mode::Guarded(guard), Some(upstream)) => self.dial_through(guard, upstream, destination).await,
            (Mode::Deny, _) => Err(EgressError::Name),
        };
        outcome.inspect_err(|refusal| self.unreached.record(self.mode.requester(), self.port(), destination, refusal))
    }

    async fn dial_through(
        &self,
        guard: &Guard,
        Upstream { route, tls }: &Upstream,
        destination: &Destination,
    ) -> Result<EgressStream, EgressError> {
        let tunnel = Tunnel { route, tls, own: self.address.ip() };
        let dialed = tunnel.connect(guard, &destination.host, destination.port).await;
        match &dialed {
            Ok(_) => self.note_upstream(None),
            Err(EgressError::Proxy(problem)) => self.note_upstream(Some(*problem).filter(|one| one.is_of_proxy())),
            // The proxy was not asked.
            Err(
                EgressError::Address { .. }
                | EgressError::Name
                | EgressError::Port
                | EgressError::Unresolved
                | EgressError::ConnectFailed(_)
                | EgressError::TimedOut,
            ) => {}
        }
        dialed
    }

    fn note_upstream(&self, problem: Option<ProxyProblem>) {
        *self.upstream_problem.lock().unwrap_or_else(PoisonError::into_inner) = problem;
    }

    /// What was wrong with the proxy of the team when it was last used. `None`: it worked, or was not used.
    pub(super) fn upstream_problem(&self) -> Option<ProxyProblem> {
        *self.upstream_problem.lock().unwrap_or_else(PoisonError::into_inner)
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
