//! One listening socket and its connections, which serve one grab.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use grabd_domain::proxies::{ProxyProblem, ProxyRoute};
use grabd_egress::ClientTls;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::connection;
use super::listener_limits::Limits;
use super::state::{ListenerState, Mode, Upstream};
use super::unreached::UnreachedTarget;
use crate::blocklists::Blocklist;

/// The listener of one grab. Dropping it closes the socket and all connections.
pub(crate) struct Listener {
    state: Arc<ListenerState>,
    _closes: DropGuard,
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
        let state = Arc::new(ListenerState::new(mode, address, limits, tasks, closed.clone()));
        state.spawn(accept(Arc::clone(&state), socket));
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

    /// Sets the proxy of the team that all connections of the grab go through, once. It must be set before the first
    /// request.
    pub(crate) fn set_upstream(&self, route: Arc<ProxyRoute>, tls: ClientTls) {
        // As for the blocklist.
        let _ = self.state.upstream.set(Upstream { route, tls });
    }

    /// The proxy that the connections of the grab go through. `None`: they are direct.
    pub(crate) fn upstream(&self) -> Option<&ProxyRoute> {
        self.state.upstream.get().map(|upstream| &*upstream.route)
    }

    /// What was wrong with that proxy itself when it was last used. `None`: it worked.
    pub(crate) fn upstream_problem(&self) -> Option<ProxyProblem> {
        self.state.upstream_problem()
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

/// Accepts connections until the listener closes or fails.
async fn accept(state: Arc<ListenerState>, socket: TcpListener) {
    let permits = Arc::new(Semaphore::new(state.limits.connections));
    loop {
        let stream = match socket.accept().await {
            Ok((stream, _)) => stream,
            // The client disconnected before it was accepted.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
            // Most likely out of descriptors. Ends the listener, to avoid a busy loop. The grab fails.
            Err(error) => return tracing::warn!(proxy.port = state.port(), %error, "a grab's listener failed"),
        };
        let Ok(permit) = Arc::clone(&permits).try_acquire_owned() else {
            tracing::debug!(proxy.port = state.port(), "a grab opened too many connections");
            continue;
        };
        let shared = Arc::clone(&state);
        state.spawn(async move {
            let time_limit = Duration::from_secs(shared.limits.connection_seconds);
            if timeout(time_limit, connection::serve(stream, Arc::clone(&shared))).await.is_err() {
                tracing::debug!(proxy.port = shared.port(), "a connection exceeded its time limit");
            }
            drop(permit);
        });
    }
}
