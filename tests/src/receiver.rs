//! A webhook receiver that sends scripted responses and records requests.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use grabd_domain::Timestamp;
use grabd_engine::clock::Clock;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

/// The longest wait for a message: enough for a second attempt on a busy machine.
const WAIT_LIMIT: Duration = Duration::from_secs(40);

/// A received request.
#[derive(Clone, Debug)]
pub struct ReceivedRequest {
    /// The request path.
    pub path: String,
    /// `webhook-id`, `webhook-timestamp` and `webhook-signature`.
    pub signature_headers: [String; 3],
    /// `User-Agent`.
    pub agent: String,
    /// The raw body.
    pub body: String,
    /// When it had arrived.
    pub at: Timestamp,
}

/// A running receiver. It stops when dropped.
pub struct Receiver {
    address: SocketAddr,
    shared: Arc<Shared>,
    _task: AbortOnDropHandle<()>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<Inbox>,
    arrived: Notify,
}

#[derive(Default)]
struct Inbox {
    statuses: VecDeque<u16>,
    received: Vec<ReceivedRequest>,
}

impl Receiver {
    /// Listens on a free port of an address.
    pub async fn start(ip: IpAddr) -> anyhow::Result<Self> {
        Self::start_at(SocketAddr::new(ip, 0)).await
    }

    /// Listens on this address and port.
    pub async fn start_at(address: SocketAddr) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let router = Router::new().fallback(take).with_state(Arc::clone(&shared));
        let task = TaskTracker::new().spawn(async move {
            // Ends when the task is aborted.
            drop(axum::serve(listener, router).await);
        });
        Ok(Self { address, shared, _task: AbortOnDropHandle::new(task) })
    }

    /// The address that it listens on.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The webhook URL.
    pub fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    /// Responds to the next requests with these statuses, and to all later ones with 200.
    pub fn respond_with(&self, statuses: &[u16]) {
        self.shared.lock().statuses = statuses.iter().copied().collect();
    }

    /// All received requests.
    pub fn received(&self) -> Vec<ReceivedRequest> {
        self.shared.lock().received.clone()
    }

    /// Waits for the request with this index, from 0.
    pub async fn wait_for(&self, number: usize) -> anyhow::Result<ReceivedRequest> {
        let wait = async {
            loop {
                let arrived = self.shared.arrived.notified();
                if let Some(received) = self.received().get(number).cloned() {
                    return received;
                }
                arrived.await;
            }
        };
        timeout(WAIT_LIMIT, wait).await.with_context(|| format!("no message {number} within {WAIT_LIMIT:?}"))
    }
}

/// Accepts connections and never responds. It stops when dropped.
pub struct SilentServer {
    address: SocketAddr,
    _task: AbortOnDropHandle<()>,
}

impl SilentServer {
    /// Listens on a free port of an address.
    pub async fn start(ip: IpAddr) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((ip, 0)).await?;
        let address = listener.local_addr()?;
        let task = TaskTracker::new().spawn(async move {
            let mut connections = Vec::new();
            while let Ok((connection, _)) = listener.accept().await {
                connections.push(connection);
            }
        });
        Ok(Self { address, _task: AbortOnDropHandle::new(task) })
    }

    /// A webhook URL.
    pub fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }
}

impl ReceivedRequest {
    /// The body as JSON.
    pub fn json(&self) -> anyhow::Result<Value> {
        Ok(serde_json::from_str(&self.body)?)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inbox> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn take(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let header = |name: &str| {
        let value = head.headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    let signature_headers = [header("webhook-id"), header("webhook-timestamp"), header("webhook-signature")];
    let (path, agent) = (head.uri.path().to_owned(), header("user-agent"));
    let Ok(body) = axum::body::to_bytes(body, 1 << 20).await else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let body = String::from_utf8_lossy(&body).into_owned();
    let status = {
        let mut inbox = shared.lock();
        inbox.received.push(ReceivedRequest { path, signature_headers, agent, body, at: Clock::system().now() });
        inbox.statuses.pop_front().unwrap_or(200)
    };
    shared.arrived.notify_waiters();
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    match status.is_redirection() {
        true => (status, [(LOCATION, "/elsewhere")]).into_response(),
        false => status.into_response(),
    }
}
