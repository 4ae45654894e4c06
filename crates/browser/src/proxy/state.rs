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
    /// How that proxy has worked.
    upstream_use: Mutex<UpstreamUse>,
    tasks: TaskTracker,
    closed: CancellationToken,
}

/// A proxy of the team.
pub(super) struct Upstream {
    pub(super) route: Arc<ProxyRoute>,
    pub(super) tls: ClientTls,
}

/// How a proxy of the team has worked for this grab.
#[derive(Default)]
struct UpstreamUse {
    /// Whether it has made a connection.
    has_worked: bool,
    /// What was wrong with it when it was last used. `None`: it worked.
    problem: Option<ProxyProblem>,
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
            upstream_use: Mutex::default(),
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
            Ok(_) => self.note_upstream(Ok(())),
            Err(EgressError::Proxy(problem)) => self.note_upstream(Err(*problem)),
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

    fn note_upstream(&self, outcome: Result<(), ProxyProblem>) {
        let mut upstream_use = self.upstream_use.lock().unwrap_or_else(PoisonError::into_inner);
        upstream_use.has_worked |= outcome.is_ok();
        upstream_use.problem = match outcome {
            Ok(()) => None,
            // It is a proxy, so this is how it refuses the site: some answer 400 for IPv6, or 405 for unusual ports.
            Err(ProxyProblem::NotAProxy) if upstream_use.has_worked => None,
            Err(problem) => Some(problem).filter(|problem| problem.is_of_proxy()),
        };
    }

    /// What was wrong with the proxy of the team when it was last used. `None`: it worked, or was not used.
    pub(super) fn upstream_problem(&self) -> Option<ProxyProblem> {
        self.upstream_use.lock().unwrap_or_else(PoisonError::into_inner).problem
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
