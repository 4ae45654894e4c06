//! One connection from the browser, from its first request to its end or its change into a tunnel.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{Either, Empty};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::listener::Door;
use super::meter::Metered;
use super::plain::{self, Origin};
use super::target::{Malformed, Target, target};
use super::tunnel;

/// An origin's body as it arrives, or nothing.
pub(super) type Body = Either<Incoming, Empty<Bytes>>;

/// Why a request gets no answer: the connection closes, and the browser reports a network error.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unanswered {
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error(transparent)]
    Refused(#[from] grabd_egress::Refusal),
    #[error("the origin broke off")]
    Origin(#[source] hyper::Error),
    #[error("the origin answered as a proxy would")]
    NotAnOrigin,
}

/// What the requests of one connection leave for the next.
pub(super) struct Session {
    pub(super) door: Arc<Door>,
    origin: Mutex<Option<Origin>>,
    tunnel: Mutex<Option<TcpStream>>,
}

/// Serves `stream` to its end. Dropping the future closes it, and what it opened.
pub(super) async fn serve(stream: TcpStream, door: Arc<Door>) {
    // Without it a small answer waits for the acknowledgement of the one before.
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let session = Arc::new(Session { door: Arc::clone(&door), origin: Mutex::default(), tunnel: Mutex::default() });
    let service = service_fn(|request| answer(Arc::clone(&session), request));
    let connection =
        reader(door.limits.header_bytes).serve_connection(TokioIo::new(Metered::new(stream, door)), service);
    match connection.without_shutdown().await {
        Ok(parts) => {
            if let Some(far) = session.take_tunnel() {
                tunnel::run(parts.io.into_inner(), &parts.read_buf, far).await;
            }
        }
        Err(error) => tracing::debug!(%error, cause = ?std::error::Error::source(&error), "a connection ended"),
    }
}

/// What reads requests, whose heads may have so many bytes.
pub(super) fn reader(header_bytes: usize) -> http1::Builder {
    let mut reader = http1::Builder::new();
    reader
        .preserve_header_case(true)
        .title_case_headers(true)
        .auto_date_header(false)
        .header_read_timeout(None)
        .max_header_size(header_bytes)
        .max_buf_size(header_bytes);
    reader
}

async fn answer(session: Arc<Session>, request: Request<Incoming>) -> Result<Response<Body>, Unanswered> {
    match target(request.method(), request.uri()) {
        Ok(Target::Tunnel(destination)) => Ok(tunnel::answer(&session, &destination).await),
        Ok(Target::Plain(destination, host, path)) => plain::answer(&session, destination, &host, path, request).await,
        Err(malformed) if request.method() == Method::CONNECT => {
            tracing::debug!(%malformed, "no tunnel");
            Ok(tunnel::refused())
        }
        Err(malformed) => Err(malformed.into()),
    }
}

impl Session {
    pub(super) fn keep_origin(&self, origin: Origin) {
        *self.origin.lock().unwrap_or_else(PoisonError::into_inner) = Some(origin);
    }

    pub(super) fn take_origin(&self) -> Option<Origin> {
        self.origin.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(super) fn keep_tunnel(&self, far: TcpStream) {
        *self.tunnel.lock().unwrap_or_else(PoisonError::into_inner) = Some(far);
    }

    fn take_tunnel(&self) -> Option<TcpStream> {
        self.tunnel.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
