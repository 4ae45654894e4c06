//! A renderer of a cluster: attaches to all cores, and offers each of its slots to one of them at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use grabd_domain::render::Renderer;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

use crate::direct_uploads::DirectUploads;
use crate::renderer_client::{SlotSource, Worker, client, session};
use crate::slot_offers::SlotOffers;

/// Initial and maximum delay between attempts to attach to a core. The delay doubles after each failure.
const RECONNECT_DELAY: Duration = Duration::from_millis(500);
const MAX_RECONNECT_DELAY: Duration = Duration::from_secs(10);
/// A session that lasted for this long was no failed attempt.
const LASTED: Duration = Duration::from_secs(10);
/// How often the names of the cores are resolved, and the same until they could be for the first time.
const RESOLVE_EVERY: Duration = Duration::from_secs(30);
const RESOLVE_AGAIN: Duration = Duration::from_secs(2);
/// Time limits of a lookup, and of a connection.
const LOOKUP_LIMIT: Duration = Duration::from_secs(5);
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// A core that does not answer a ping for this long is lost. A paused process answers none.
const PING_EVERY: Duration = Duration::from_secs(2);
const PING_LIMIT: Duration = Duration::from_secs(5);
/// Maximum number of cores. Further addresses are ignored.
const MAX_CORES: usize = 64;

/// Makes the endpoint for the address of a core, with its TLS settings.
type MakeEndpoint = dyn Fn(SocketAddr) -> Result<Endpoint, String> + Send + Sync;

/// The cores of a renderer.
pub struct RendererPool {
    /// Names with ports, or addresses with ports.
    cores: Vec<String>,
    endpoint: Arc<MakeEndpoint>,
    slots: usize,
    offers: Arc<SlotOffers>,
    uploads: Option<Arc<DirectUploads>>,
}

/// The cores that a renderer is attached to.
#[derive(Clone)]
pub struct AttachedCores(Arc<SlotOffers>);

impl AttachedCores {
    /// Their number.
    pub fn count(&self) -> usize {
        self.0.core_count()
    }
}

impl RendererPool {
    /// A renderer with this number of slots for these cores, each a name or an address with a port. A name with several
    /// addresses counts as several cores.
    pub fn new<E>(cores: Vec<String>, slots: usize, endpoint: E) -> Self
    where
        E: Fn(SocketAddr) -> Result<Endpoint, String> + Send + Sync + 'static,
    {
        let offers = Arc::new(SlotOffers::new(slots));
        Self { cores, endpoint: Arc::new(endpoint), slots, offers, uploads: None }
    }

    /// Uploads images to the object store where the cores allow that. Without this, all images are sent to the cores.
    #[must_use]
    pub fn with_uploads(self, uploads: Arc<DirectUploads>) -> Self {
        Self { uploads: Some(uploads), ..self }
    }

    /// The cores that the renderer is attached to, also while it runs.
    pub fn attached(&self) -> AttachedCores {
        AttachedCores(Arc::clone(&self.offers))
    }

    /// Renders for the cores until `stop` is cancelled, then finishes the renders in progress and returns.
    pub async fn run<R: Renderer>(self, renderer: R, stop: CancellationToken) {
        let worker = Arc::new(Worker { renderer, uploads: self.uploads.clone() });
        let tasks = TaskTracker::new();
        let mut running: BTreeMap<SocketAddr, CancellationToken> = BTreeMap::new();
        loop {
            let resolved = stop.run_until_cancelled(resolve(&self.cores)).await.unwrap_or_default();
            // A failed lookup does not end the sessions that there are.
            if !resolved.is_empty() {
                running.retain(|core, token| {
                    let is_kept = resolved.contains(core);
                    if !is_kept {
                        tracing::info!(%core, "a core has no address any more");
                        token.cancel();
                    }
                    is_kept
                });
            }
            for core in resolved.iter().copied() {
                running.entry(core).or_insert_with(|| {
                    let token = stop.child_token();
                    let source = SlotSource::Offered {
                        offers: Arc::clone(&self.offers),
                        core,
                        slots: self.slots,
                        cores: resolved.len(),
                    };
                    let (endpoint, worker, stop) = (Arc::clone(&self.endpoint), Arc::clone(&worker), token.clone());
                    tasks.spawn(async move { stay_attached(core, &*endpoint, &source, &worker, &stop).await });
                    token
                });
            }
            let pause = if running.is_empty() { RESOLVE_AGAIN } else { RESOLVE_EVERY };
            if stop.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
                break;
            }
        }
        tasks.close();
        tasks.wait().await;
    }
}

/// The addresses of all cores.
async fn resolve(names: &[String]) -> BTreeSet<SocketAddr> {
    let mut addresses = BTreeSet::new();
    for name in names {
        match tokio::time::timeout(LOOKUP_LIMIT, tokio::net::lookup_host(name)).await {
            Ok(Ok(found)) => addresses.extend(found),
            Ok(Err(error)) => tracing::warn!(core = name, %error, "the address of a core was not found; trying again"),
            Err(_) => tracing::warn!(core = name, "the address of a core was not found in time; trying again"),
        }
    }
    addresses.into_iter().take(MAX_CORES).collect()
}

/// Runs one session with a core after the other.
async fn stay_attached<R: Renderer>(
    core: SocketAddr,
    endpoint: &MakeEndpoint,
    source: &SlotSource,
    worker: &Arc<Worker<R>>,
    stop: &CancellationToken,
) {
    let renders = TaskTracker::new();
    let mut delay = RECONNECT_DELAY;
    while !stop.is_cancelled() {
        let began = Instant::now();
        let ended = match stop.run_until_cancelled(connect(core, endpoint)).await {
            None => break,
            Some(Ok(channel)) => session(client(channel), worker, source, &renders, stop).await,
            Some(Err(status)) => Err(status),
        };
        if began.elapsed() >= LASTED {
            delay = RECONNECT_DELAY;
        }
        match ended {
            Ok(()) => {}
            Err(status) if status.code() == Code::FailedPrecondition => {
                tracing::error!(%core, reason = status.message(), "this renderer cannot attach to a core; trying again");
                delay = MAX_RECONNECT_DELAY;
            }
            Err(status) => tracing::warn!(%core, %status, "there is no session with a core; trying again"),
        }
        // Wait before reconnecting: a core that is down does not notify when it is back.
        let _ = stop.run_until_cancelled(tokio::time::sleep(delay)).await;
        delay = (delay * 2).min(MAX_RECONNECT_DELAY);
    }
    renders.close();
    renders.wait().await;
}

async fn connect(core: SocketAddr, endpoint: &MakeEndpoint) -> Result<Channel, Status> {
    let endpoint = endpoint(core).map_err(Status::failed_precondition)?;
    let endpoint = endpoint
        .connect_timeout(CONNECT_LIMIT)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_LIMIT)
        .keep_alive_while_idle(true);
    match tokio::time::timeout(2 * CONNECT_LIMIT, endpoint.connect()).await {
        Ok(connected) => connected.map_err(|error| Status::unavailable(describe(&error))),
        Err(_) => Err(Status::unavailable("the core did not accept the connection in time")),
    }
}

/// The error with its causes: the error of the transport itself says nothing about a certificate.
fn describe(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source()).map(|cause| format!(": {cause}"));
    std::iter::once(error.to_string()).chain(causes).collect()
}
