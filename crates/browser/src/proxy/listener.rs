//! One listening socket: a grab's door, what came through it, and the end of all that when it closes.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use grabd_domain::address::Refused;
use grabd_egress::{Guard, Refusal};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::attempts::{Attempt, Attempts};
use super::meter::Meter;
use super::target::Destination;
use super::{Limits, connection};

/// A grab's own port. Dropping it closes the socket and everything that came by it.
pub(crate) struct Listener {
    door: Arc<Door>,
    _closes: DropGuard,
}

/// What the connections of one listener share.
pub(super) struct Door {
    mode: Mode,
    address: SocketAddr,
    pub(super) limits: Limits,
    pub(super) meter: Meter,
    attempts: Attempts,
    tasks: TaskTracker,
    closed: CancellationToken,
}

/// What becomes of a request.
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
        let door = Door { mode, address, limits, meter, attempts: Attempts::default(), tasks, closed: closed.clone() };
        let door = Arc::new(door);
        door.spawn(Arc::clone(&door).accept(socket));
        Ok(Self { door, _closes: closed.drop_guard() })
    }

    pub(crate) fn port(&self) -> u16 {
        self.door.port()
    }

    /// What was asked for and not reached: the first few, in the order they came.
    pub(crate) fn refusals(&self) -> Vec<Attempt> {
        self.door.attempts.listed()
    }

    /// How often the guard said no. A target that could not be reached does not count.
    pub(crate) fn refused_count(&self) -> u32 {
        self.door.attempts.refused_count()
    }

    /// Did the guard say no to this host and port? The host may have brackets, a trailing dot or capitals.
    pub(crate) fn was_refused(&self, host: &str, port: u16) -> bool {
        self.door.attempts.was_refused(host, port)
    }

    /// Bytes to and from the browser so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.door.meter.bytes()
    }

    /// Was everything cut because the grab moved too many bytes?
    pub(crate) fn over_limit(&self) -> bool {
        self.door.meter.over_limit()
    }
}

impl Mode {
    /// Who asks here: what nobody's context asks for is the browser's own doing, and should not be.
    fn asked_by(&self) -> &'static str {
        match self {
            Self::Guarded(_) => "page",
            Self::Deny => "browser",
        }
    }
}

impl Door {
    /// A checked connection to `destination`. Every failure is remembered.
    pub(super) async fn dial(&self, destination: &Destination) -> Result<TcpStream, Refusal> {
        let outcome = match &self.mode {
            Mode::Guarded(guard) => {
                guard.connect(&destination.host, destination.port).await.and_then(|stream| self.not_ourselves(stream))
            }
            Mode::Deny => Err(Refusal::Name),
        };
        outcome.inspect_err(|refusal| self.attempts.record(self.mode.asked_by(), self.port(), destination, refusal))
    }

    /// Where the operator allows loopback, a request to the proxy itself would go round for ever.
    fn not_ourselves(&self, stream: TcpStream) -> Result<TcpStream, Refusal> {
        let peer = stream.peer_addr().map_err(|error| Refusal::ConnectFailed(error.kind()))?;
        match peer.ip() == self.address.ip() {
            true => Err(Refusal::Address { address: peer.ip(), why: Refused::Own }),
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
        let places = Arc::new(Semaphore::new(self.limits.connections));
        loop {
            let stream = match socket.accept().await {
                Ok((stream, _)) => stream,
                // The browser hung up before we looked.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                // Out of descriptors, most likely. The grab fails, and nothing spins.
                Err(error) => return tracing::warn!(proxy.port = self.port(), %error, "a grab's listener closed early"),
            };
            let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
                tracing::debug!(proxy.port = self.port(), "a grab opened too many connections");
                continue;
            };
            let door = Arc::clone(&self);
            self.spawn(async move {
                let life = Duration::from_secs(door.limits.connection_seconds);
                if timeout(life, connection::serve(stream, Arc::clone(&door))).await.is_err() {
                    tracing::debug!(proxy.port = door.port(), "a connection outlived its limit");
                }
                drop(place);
            });
        }
    }
}
