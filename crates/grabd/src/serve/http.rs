//! The HTTP listener: bounded in connections, header size and patience, and drained without cutting anybody off.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

/// Connections open at a time; further ones wait in the accept queue.
const MAX_CONNECTIONS: usize = 4096;
/// How long a request's header may take to arrive.
const HEADER_PATIENCE: Duration = Duration::from_secs(10);
/// The largest header, in bytes.
pub(super) const MAX_HEADER_BYTES: u32 = 16 << 10;
/// Requests of one customer on one HTTP/2 connection at a time.
const MAX_STREAMS: u32 = 100;
/// An HTTP/2 peer that says nothing is asked this often whether it is still there.
pub(super) const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(20);
/// And is given this long to answer.
pub(super) const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(10);
/// When accepting fails (too many files open), this long is waited before the next try.
const ACCEPT_BACK_OFF: Duration = Duration::from_millis(100);
/// What open requests get at a drain: the longest synchronous create and its answer.
const DRAIN: Duration = Duration::from_secs(30);

/// Accepts until `stop`, then waits for open requests.
pub(super) async fn serve(listener: TcpListener, router: Router, stop: CancellationToken) {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_PATIENCE)
        .max_buf_size(MAX_HEADER_BYTES as usize);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(KEEP_ALIVE_INTERVAL)
        .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(MAX_HEADER_BYTES);
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let graceful = GracefulShutdown::new();
    let tasks = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = async {
                let place = Arc::clone(&places).acquire_owned().await;
                (place, listener.accept().await)
            } => accepted,
        };
        let (Ok(place), accepted) = accepted else { break };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_BACK_OFF).await;
                continue;
            }
        };
        // Answers are small and complete: waiting for more to send only delays them.
        let _ = stream.set_nodelay(true);
        let service = router.clone().map_request(move |mut request: http::Request<hyper::body::Incoming>| {
            request.extensions_mut().insert(ConnectInfo(peer));
            request
        });
        let service = TowerToHyperService::new(service);
        let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service).into_owned();
        let connection = graceful.watch(connection);
        tasks.spawn(async move {
            // A peer that breaks off or talks nonsense is no event of ours.
            let _ = connection.await;
            drop(place);
        });
    }
    drop(listener);
    if tokio::time::timeout(DRAIN, graceful.shutdown()).await.is_err() {
        tracing::warn!("some connections were still open at the end of the drain");
    }
}
