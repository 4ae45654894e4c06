//! A listener for untrusted clients: all resources and waiting times of a client are limited.
//!
//! `limiter` limits connections and requests, in total and for one address. `activity` tracks what a connection is
//! doing and for how long. `tracked_stream` and `response` report to it, and `connection` enforces its decisions.
//! `request_body` reads what routes leave unread.
//! Headers, HTTP/2 frames and streams are limited by the protocol settings of each [`ListenerService`].
//!
//! *Invariant:* nothing here knows a route. The content of responses is defined by the [`ListenerService`].

mod activity;
mod connection;
mod connection_limits;
mod limiter;
mod request_body;
mod response;
mod tracked_stream;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::response::Response;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use activity::ConnectionActivity;
pub(crate) use connection_limits::ConnectionLimits;
pub use connection_limits::Timeouts;
use limiter::{ConnectionLimiter, ConnectionPermit};
use response::ConnectionService;
use tracked_stream::TrackedStream;

/// Delay after accepting failed, for example with too many open files. Nothing signals that another file was closed.
const ACCEPT_BACK_OFF: Duration = Duration::from_millis(100);
/// Time limit for open requests during a drain: the longest synchronous create and its response.
const DRAIN: Duration = Duration::from_secs(30);

/// The service behind a listener, with its protocol settings and error responses.
pub(crate) struct ListenerService {
    /// The protocol and its limits.
    pub(crate) protocol: Builder<TokioExecutor>,
    /// The routes.
    pub(crate) router: Router,
    /// Bytes to send to a rejected connection. If empty, it is closed silently.
    pub(crate) rejection: Vec<u8>,
    /// A replacement for these response bytes, for responses that hyper generates for invalid requests.
    pub(crate) replace_response: fn(&[u8]) -> Option<Vec<u8>>,
    /// The response if an address has too many open requests.
    pub(crate) too_many_requests: fn() -> Response,
}

/// Accepts connections until `stop`, then waits for open requests.
pub(crate) async fn serve(
    listener: TcpListener,
    service: ListenerService,
    limits: ConnectionLimits,
    timeouts: Timeouts,
    stop: CancellationToken,
) {
    let limiter = ConnectionLimiter::new(limits);
    let service = Arc::new(service);
    let tasks = TaskTracker::new();
    let abort = CancellationToken::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = async {
                let capacity = limiter.acquire_capacity().await;
                (capacity, listener.accept().await)
            } => accepted,
        };
        let (capacity, accepted) = accepted;
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                // The loop checks `stop` again.
                let _ = stop.run_until_cancelled(tokio::time::sleep(ACCEPT_BACK_OFF)).await;
                continue;
            }
        };
        // Responses are small and complete, so Nagle's algorithm would only delay them.
        let _ = stream.set_nodelay(true);
        let Some(permit) = limiter.acquire(peer, capacity) else {
            // A new connection has buffer space for these bytes. Otherwise the client does not get them.
            let _ = stream.try_write(&service.rejection);
            continue;
        };
        tasks.spawn(serve_connection(stream, Arc::clone(&service), permit, timeouts, stop.clone(), abort.clone()));
    }
    drop(listener);
    tasks.close();
    if tokio::time::timeout(DRAIN, tasks.wait()).await.is_err() {
        tracing::warn!("some connections were still open at the end of the drain; closing them");
        abort.cancel();
        tasks.wait().await;
    }
}

/// Serves one connection until it ends.
async fn serve_connection(
    stream: TcpStream,
    service: Arc<ListenerService>,
    permit: ConnectionPermit,
    timeouts: Timeouts,
    stop: CancellationToken,
    abort: CancellationToken,
) {
    let activity = Arc::new(ConnectionActivity::new());
    let permit = Arc::new(permit);
    let routes = ConnectionService::new(
        service.router.clone(),
        service.too_many_requests,
        Arc::clone(&activity),
        Arc::clone(&permit),
    );
    let stream = TokioIo::new(TrackedStream::new(stream, Arc::clone(&activity), service.replace_response));
    let connection = service.protocol.serve_connection(stream, TowerToHyperService::new(routes));
    tokio::select! {
        () = connection::drive(connection, &activity, &permit, timeouts, &stop) => {}
        () = abort.cancelled() => {}
    }
}
