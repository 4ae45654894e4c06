//! A customer's receiver of webhooks, which answers by script and keeps what it got.

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
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

/// The longest a message may keep its receiver waiting: a second attempt, on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(40);

/// One request that came in.
#[derive(Clone, Debug)]
pub struct Received {
    /// Its path.
    pub path: String,
    /// `webhook-id`, `webhook-timestamp` and `webhook-signature`.
    pub signed: [String; 3],
    /// Its `User-Agent`.
    pub agent: String,
    /// Its body, byte for byte.
    pub body: String,
}

/// A running receiver; it ends when it is dropped.
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
    answers: VecDeque<u16>,
    received: Vec<Received>,
}

impl Receiver {
    /// Listens on any port of an address.
    pub async fn start(ip: IpAddr) -> anyhow::Result<Self> {
        Self::start_at(SocketAddr::new(ip, 0)).await
    }

    /// Listens there.
    pub async fn start_at(address: SocketAddr) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let router = Router::new().fallback(take).with_state(Arc::clone(&shared));
        let task = TaskTracker::new().spawn(async move {
            // Ends with its task.
            drop(axum::serve(listener, router).await);
        });
        Ok(Self { address, shared, _task: AbortOnDropHandle::new(task) })
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address of its hook.
    pub fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    /// Answers the next requests with these statuses, and all after them with 200.
    pub fn answers(&self, statuses: &[u16]) {
        self.shared.lock().answers = statuses.iter().copied().collect();
    }

    /// Everything that has come in.
    pub fn received(&self) -> Vec<Received> {
        self.shared.lock().received.clone()
    }

    /// The request with this number, from 0, as soon as it is there.
    pub async fn wait_for(&self, number: usize) -> anyhow::Result<Received> {
        let wait = async {
            loop {
                let arrived = self.shared.arrived.notified();
                if let Some(received) = self.received().get(number).cloned() {
                    return received;
                }
                arrived.await;
            }
        };
        timeout(PATIENCE, wait).await.with_context(|| format!("no message {number} within {PATIENCE:?}"))
    }
}

impl Received {
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
    let signed = [header("webhook-id"), header("webhook-timestamp"), header("webhook-signature")];
    let (path, agent) = (head.uri.path().to_owned(), header("user-agent"));
    let Ok(body) = axum::body::to_bytes(body, 1 << 20).await else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let body = String::from_utf8_lossy(&body).into_owned();
    let status = {
        let mut inbox = shared.lock();
        inbox.received.push(Received { path, signed, agent, body });
        inbox.answers.pop_front().unwrap_or(200)
    };
    shared.arrived.notify_waiters();
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    match status.is_redirection() {
        true => (status, [(LOCATION, "/elsewhere")]).into_response(),
        false => status.into_response(),
    }
}
