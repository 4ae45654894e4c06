//! One connection from the browser, until it ends or becomes a tunnel.

use std::sync::Arc;

use http::{Method, Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::meter::MeteredStream;
use super::session::{Body, RequestError, Session};
use super::state::ListenerState;
use super::target::{Target, target};
use super::{plain, tunnel};

/// Serves `stream` until it ends. Dropping the future closes it and its connections to origins.
pub(super) async fn serve(stream: TcpStream, state: Arc<ListenerState>) {
    // Without it, small responses wait for the acknowledgement of the previous packet.
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let session = Arc::new(Session::new(Arc::clone(&state)));
    let service = service_fn(|request| respond(Arc::clone(&session), request));
    let connection = server_builder(state.limits.header_bytes)
        .serve_connection(TokioIo::new(MeteredStream::new(stream, Arc::clone(&state.meter))), service);
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
