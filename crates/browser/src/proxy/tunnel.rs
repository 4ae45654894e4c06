//! CONNECT: an answer, then bytes both ways until both sides are done.

use std::io;

use bytes::Bytes;
use grabd_egress::Refusal;
use http::header::CONNECTION;
use http::{HeaderValue, Response, StatusCode};
use http_body_util::{Either, Empty};
use tokio::io::{AsyncWriteExt, copy_bidirectional_with_sizes};
use tokio::net::TcpStream;

use super::connection::{Body, Session};
use super::meter::Metered;
use super::target::Destination;

/// Requests are small, responses are not. A busy page has some thirty tunnels.
const BUFFER_UP: usize = 8 << 10;
const BUFFER_DOWN: usize = 32 << 10;

/// The answer to a CONNECT. After a good one, the session holds the other end.
pub(super) async fn answer(session: &Session, destination: &Destination) -> Response<Body> {
    match session.door.dial(destination).await {
        Ok(far) => {
            session.keep_tunnel(far);
            Response::new(Either::Right(Empty::new()))
        }
        Err(Refusal::Address { .. } | Refusal::Name | Refusal::Port) => refused(),
        Err(Refusal::Unresolved | Refusal::ConnectFailed(_)) => last_word(StatusCode::BAD_GATEWAY),
        Err(Refusal::TimedOut) => last_word(StatusCode::GATEWAY_TIMEOUT),
    }
}

pub(super) fn refused() -> Response<Body> {
    last_word(StatusCode::FORBIDDEN)
}

/// Passes bytes until both directions have ended, each on its own. `early` is what came behind the request.
pub(super) async fn run(mut near: Metered, early: &Bytes, mut far: TcpStream) {
    let ended: io::Result<()> = async {
        far.write_all(early).await?;
        copy_bidirectional_with_sizes(&mut near, &mut far, BUFFER_UP, BUFFER_DOWN).await?;
        Ok(())
    }
    .await;
    if let Err(error) = ended {
        tracing::trace!(%error, "a tunnel broke off");
    }
}

/// The browser reports it as a failed tunnel and never shows it.
fn last_word(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Either::Right(Empty::new()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}
