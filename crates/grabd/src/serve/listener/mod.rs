//! A listener for the open network: everything a client may hold or keep waiting has a bound.
//!
//! `places` bounds connections and requests, of all clients and of one address. `pulse` knows what one connection is
//! doing and for how long; `line` and `answer` tell it, `connection` acts on it. Headers, HTTP/2 frames and streams are
//! bounded by the protocol's own settings, which each face brings.
//!
//! *Invariant:* nothing here knows a route. What an answer says is for the faces.

mod answer;
mod connection;
mod line;
mod places;
mod pulse;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::response::Response;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use ipnet::IpNet;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use answer::Answering;
use line::Line;
use places::{Place, Places};
use pulse::Pulse;

/// When accepting fails (too many files open), this long is waited before the next try: that another part of the process
/// closes a file is no event here.
const ACCEPT_BACK_OFF: Duration = Duration::from_millis(100);
/// What open requests get at a drain: the longest synchronous create and its answer.
const DRAIN: Duration = Duration::from_secs(30);

/// How much clients may hold.
#[derive(Clone, Debug)]
pub(crate) struct Bounds {
    /// Connections at a time; further ones wait in the accept queue, and idle ones make room.
    pub(crate) connections: usize,
    /// Connections of one address at a time; further ones are turned away.
    pub(crate) connections_per_address: usize,
    /// Requests of one address at a time.
    pub(crate) requests_per_address: usize,
    /// Networks of proxies. Many clients stand behind one, so what is bounded for an address is not bounded for them.
    pub(crate) proxies: Vec<IpNet>,
}

/// How long clients may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// For the header of a request to arrive, from its first byte or from the opening of the connection.
    pub header: Duration,
    /// Between two requests.
    pub idle: Duration,
    /// For a client to take the next part of an answer.
    pub answer: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { header: Duration::from_secs(10), idle: Duration::from_secs(60), answer: Duration::from_secs(30) }
    }
}

/// What is served, and what those hear who ask for too much.
pub(crate) struct Face {
    /// The protocol and its limits.
    pub(crate) protocol: Builder<TokioExecutor>,
    /// The service.
    pub(crate) router: Router,
    /// Bytes for a connection that is turned away; none closes it without a word.
    pub(crate) turned_away: Vec<u8>,
    /// What to write instead of these bytes, if anything: the protocol answers what it cannot read by itself.
    pub(crate) instead: fn(&[u8]) -> Option<Vec<u8>>,
    /// The answer to a request beyond those that an address may have.
    pub(crate) too_many: fn() -> Response,
}

/// Accepts until `stop`, then waits for open requests.
pub(crate) async fn serve(
    listener: TcpListener,
    face: Face,
    bounds: Bounds,
    patience: Patience,
    stop: CancellationToken,
) {
    let places = Places::new(bounds);
    let face = Arc::new(face);
    let tasks = TaskTracker::new();
    let cut = CancellationToken::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = async {
                let room = places.room().await;
                (room, listener.accept().await)
            } => accepted,
        };
        let (room, accepted) = accepted;
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                // The loop asks about the stop itself.
                let _ = stop.run_until_cancelled(tokio::time::sleep(ACCEPT_BACK_OFF)).await;
                continue;
            }
        };
        // Answers are small and complete: waiting for more to send only delays them.
        let _ = stream.set_nodelay(true);
        let Some(place) = places.take(peer, room) else {
            // A fresh connection takes these few bytes at once, or its client does without.
            let _ = stream.try_write(&face.turned_away);
            continue;
        };
        tasks.spawn(one(stream, Arc::clone(&face), place, patience, stop.clone(), cut.clone()));
    }
    drop(listener);
    tasks.close();
    if tokio::time::timeout(DRAIN, tasks.wait()).await.is_err() {
        tracing::warn!("some connections were still open at the end of the drain");
        cut.cancel();
        tasks.wait().await;
    }
}

/// One connection, from its first byte to its end.
async fn one(
    stream: TcpStream,
    face: Arc<Face>,
    place: Place,
    patience: Patience,
    stop: CancellationToken,
    cut: CancellationToken,
) {
    let pulse = Arc::new(Pulse::new());
    let place = Arc::new(place);
    let service = Answering::new(face.router.clone(), face.too_many, Arc::clone(&pulse), Arc::clone(&place));
    let line = TokioIo::new(Line::new(stream, Arc::clone(&pulse), face.instead));
    let connection = face.protocol.serve_connection(line, TowerToHyperService::new(service));
    tokio::select! {
        () = connection::drive(connection, &pulse, &place, patience, &stop) => {}
        () = cut.cancelled() => {}
    }
}
