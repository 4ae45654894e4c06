//! CONNECT: a response, then bytes in both directions until both sides are done.

use std::io;

use bytes::Bytes;
use grabd_egress::{EgressError, EgressStream};
use http::header::CONNECTION;
use http::{HeaderValue, Response, StatusCode};
use http_body_util::{Either, Empty};
use tokio::io::{AsyncWriteExt, copy_bidirectional_with_sizes};

use super::meter::MeteredStream;
use super::session::{Body, Session};
use super::target::Destination;

/// Requests are small, responses are not. A busy page has about thirty tunnels.
const BUFFER_UP: usize = 8 << 10;
const BUFFER_DOWN: usize = 32 << 10;

/// The response to a CONNECT. On success, the session holds the upstream connection.
pub(super) async fn respond(session: &Session, destination: &Destination) -> Response<Body> {
    if session.state.is_listed(destination) {
        return refused();
    }
    match session.state.dial(destination).await {
        Ok(upstream) => {
            session.set_tunnel(upstream);
            Response::new(Either::Right(Empty::new()))
        }
        Err(EgressError::Address { .. } | EgressError::Name | EgressError::Port) => refused(),
        Err(EgressError::Unresolved | EgressError::ConnectFailed(_) | EgressError::Proxy(_)) => {
            error_response(StatusCode::BAD_GATEWAY)
        }
        Err(EgressError::TimedOut) => error_response(StatusCode::GATEWAY_TIMEOUT),
    }
}

pub(super) fn refused() -> Response<Body> {
    error_response(StatusCode::FORBIDDEN)
}

/// Copies bytes until both directions have ended independently. `early` is what followed the request.
pub(super) async fn run(mut client: MeteredStream, early: &Bytes, mut upstream: EgressStream) {
    let ended: io::Result<()> = async {
        upstream.write_all(early).await?;
        copy_bidirectional_with_sizes(&mut client, &mut upstream, BUFFER_UP, BUFFER_DOWN).await?;
        Ok(())
    }
    .await;
    if let Err(error) = ended {
        tracing::trace!(%error, "a tunnel failed");
    }
}

/// An error response. The browser reports a failed tunnel and never shows the response.
fn error_response(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Either::Right(Empty::new()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}
