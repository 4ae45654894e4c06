//! Drives one connection until the client ends it, the service drains, or a timeout expires.

use std::error::Error;
use std::pin::pin;
use std::time::Duration;

use axum::http::Request;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::rt::{Read, Write};
use hyper::service::Service;
use hyper_util::rt::TokioExecutor;
use hyper_util::server::conn::auto::{Connection, HttpServerConnExec};
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::activity::{Action, ConnectionActivity};
use super::connection_limits::Timeouts;
use super::limiter::ConnectionPermit;
use super::response::ResponseBody;

/// Checks per shortest timeout. Each timeout is exceeded by at most one interval.
const CHECKS: u32 = 5;

/// Returns when the connection has ended or must be dropped.
pub(super) async fn drive<I, S>(
    connection: Connection<'_, I, S, TokioExecutor>,
    activity: &ConnectionActivity,
    permit: &ConnectionPermit,
    timeouts: Timeouts,
    stop: &CancellationToken,
) where
    S: Service<Request<Incoming>, Response = Response<ResponseBody>>,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    S::Future: 'static,
    I: Read + Write + Unpin + 'static,
    TokioExecutor: HttpServerConnExec<S::Future, ResponseBody>,
{
    let mut connection = pin!(connection);
    let shortest = timeouts.header.min(timeouts.idle).min(timeouts.answer);
    let mut checks = interval((shortest / CHECKS).max(Duration::from_millis(1)));
    checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut closing_since: Option<Instant> = None;
    loop {
        let should_close = tokio::select! {
            // Disconnects and protocol errors of the peer are not logged.
            _ = connection.as_mut() => return,
            () = stop.cancelled(), if closing_since.is_none() => true,
            _ = checks.tick() => match activity.action(timeouts, closing_since.is_some() || permit.is_contended()) {
                Action::Wait => false,
                Action::Close => true,
                Action::Abort => return,
            },
        };
        match closing_since {
            // Open requests are finished.
            None if should_close => {
                connection.as_mut().graceful_shutdown();
                closing_since = Some(Instant::now());
            }
            // The client did not close the connection in time.
            Some(since) if should_close && since.elapsed() >= timeouts.answer => return,
            Some(_) | None => {}
        }
    }
}
