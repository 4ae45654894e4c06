//! One connection from the browser, until it ends or becomes a tunnel.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{Either, Empty};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::listener::ListenerState;
use super::meter::MeteredStream;
use super::plain::{self, Origin};
use super::target::{Malformed, Target, target};
use super::tunnel;

/// A streamed response body of an origin, or an empty one.
pub(super) type Body = Either<Incoming, Empty<Bytes>>;

/// Why a request gets no response. The connection is closed, and the browser reports a network error.
#[derive(Debug, thiserror::Error)]
pub(super) enum RequestError {
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error(transparent)]
    Refused(#[from] grabd_egress::EgressError),
    #[error("a filter list names the host")]
    Listed,
    #[error("the origin closed the connection or sent an invalid response")]
    Origin(#[source] hyper::Error),
    #[error("the origin sent a response that only a proxy may send")]
    NotAnOrigin,
}

/// State shared by the requests of one connection.
pub(super) struct Session {
    pub(super) state: Arc<ListenerState>,
    origin: Mutex<Option<Origin>>,
    tunnel: Mutex<Option<TcpStream>>,
}

/// Serves `stream` until it ends. Dropping the future closes it and its connections to origins.
pub(super) async fn serve(stream: TcpStream, state: Arc<ListenerState>) {
    // Without it, small responses wait for the acknowledgement of the previous packet.
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let session = Arc::new(Session { state: Arc::clone(&state), origin: Mutex::default(), tunnel: Mutex::default() });
    let service = service_fn(|request| respond(Arc::clone(&session), request));
    let connection = server_builder(state.limits.header_bytes)
        .serve_connection(TokioIo::new(MeteredStream::new(stream, state)), service);
    match connection.without_shutdown().await {
        Ok(parts) => {
            if let Some(upstream) = session.take_tunnel() {
                tunnel::run(parts.io.into_inner(), &parts.read_buf, upstream).await;
            }
        }
        Err(error) => tracing::debug!(%error, cause = ?std::error::Error::source(&error), "a connection ended"),
    }
}

/// The HTTP parser for requests with this limit for the header section.
pub(super) fn server_builder(header_bytes: usize) -> http1::Builder {
    let mut server_builder = http1::Builder::new();
    server_builder
        .preserve_header_case(true)
        .title_case_headers(true)
        .auto_date_header(false)
        .header_read_timeout(None)
        .max_header_size(header_bytes)
        .max_buf_size(header_bytes);
    server_builder
}

async fn respond(session: Arc<Session>, request: Request<Incoming>) -> Result<Response<Body>, RequestError> {
    match target(request.method(), request.uri()) {
        Ok(Target::Tunnel(destination)) => Ok(tunnel::respond(&session, &destination).await),
        Ok(Target::Plain(destination, host, path)) => plain::respond(&session, destination, &host, path, request).await,
        Err(malformed) if request.method() == Method::CONNECT => {
            tracing::debug!(%malformed, "invalid CONNECT request");
            Ok(tunnel::refused())
        }
        Err(malformed) => Err(malformed.into()),
    }
}

impl Session {
    pub(super) fn set_origin(&self, origin: Origin) {
        *self.origin.lock().unwrap_or_else(PoisonError::into_inner) = Some(origin);
    }

    pub(super) fn take_origin(&self) -> Option<Origin> {
        self.origin.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(super) fn set_tunnel(&self, upstream: TcpStream) {
        *self.tunnel.lock().unwrap_or_else(PoisonError::into_inner) = Some(upstream);
    }

    fn take_tunnel(&self) -> Option<TcpStream> {
        self.tunnel.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
