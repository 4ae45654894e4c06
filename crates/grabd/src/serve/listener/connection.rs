//! One connection driven to its end: by its client, by a drain, or because somebody's patience is over.

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

use super::Patience;
use super::answer::Answer;
use super::places::Place;
use super::pulse::{Pulse, Verdict};

/// How often a connection is looked at while the shortest patience lasts. Each is exceeded by one such look at most.
const LOOKS: u32 = 5;

/// Returns when the connection has ended or should.
pub(super) async fn drive<I, S>(
    connection: Connection<'_, I, S, TokioExecutor>,
    pulse: &Pulse,
    place: &Place,
    patience: Patience,
    stop: &CancellationToken,
) where
    S: Service<Request<Incoming>, Response = Response<Answer>>,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    S::Future: 'static,
    I: Read + Write + Unpin + 'static,
    TokioExecutor: HttpServerConnExec<S::Future, Answer>,
{
    let mut connection = pin!(connection);
    let shortest = patience.header.min(patience.idle).min(patience.answer);
    let mut looks = interval((shortest / LOOKS).max(Duration::from_millis(1)));
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut told: Option<Instant> = None;
    loop {
        let should_close = tokio::select! {
            // A peer that breaks off or talks nonsense is no event of ours.
            _ = connection.as_mut() => return,
            () = stop.cancelled(), if told.is_none() => true,
            _ = looks.tick() => match pulse.verdict(patience, told.is_some() || place.is_wanted()) {
                Verdict::Wait => false,
                Verdict::Close => true,
                Verdict::Cut => return,
            },
        };
        match told {
            // Requests that are under way still have their answers.
            None if should_close => {
                connection.as_mut().graceful_shutdown();
                told = Some(Instant::now());
            }
            // One that was told and does not go is left.
            Some(since) if should_close && since.elapsed() >= patience.answer => return,
            Some(_) | None => {}
        }
    }
}
