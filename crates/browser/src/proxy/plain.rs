//! Plain http: one request at a time, each to a checked address, bodies passed on as they arrive.

use http::uri::{Authority, PathAndQuery};
use http::{HeaderValue, Request, Response, StatusCode, Uri, Version};
use http_body_util::Either;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;

use super::connection::{Body, Session, Unanswered};
use super::headers;
use super::target::{Destination, Malformed};

/// A connection to an origin, kept for the next request to the same host and port. Its address was checked when it was
/// dialled, and is the one it stays connected to.
pub(super) struct Origin {
    destination: Destination,
    requests: http1::SendRequest<Incoming>,
}

/// The origin's answer to `request`.
pub(super) async fn answer(
    session: &Session,
    destination: Destination,
    host: &Authority,
    path: PathAndQuery,
    request: Request<Incoming>,
) -> Result<Response<Body>, Unanswered> {
    let host = HeaderValue::from_str(host.as_str()).map_err(|_| Malformed::Host)?;
    let mut origin = reach(session, destination).await?;
    let (mut head, body) = request.into_parts();
    head.headers = headers::for_origin(head.headers, &host);
    head.uri = Uri::from(path);
    head.version = Version::HTTP_11;
    head.extensions.remove::<OnUpgrade>();
    let sent = origin.requests.send_request(Request::from_parts(head, body)).await;
    let (mut head, body) = sent.map_err(Unanswered::Origin)?.into_parts();
    // Asked for neither. The browser would take the first for a protocol change and the second for our own word.
    if matches!(head.status, StatusCode::SWITCHING_PROTOCOLS | StatusCode::PROXY_AUTHENTICATION_REQUIRED) {
        return Err(Unanswered::NotAnOrigin);
    }
    session.keep_origin(origin);
    head.headers = headers::for_browser(head.headers);
    head.version = Version::HTTP_11;
    head.extensions.remove::<OnUpgrade>();
    Ok(Response::from_parts(head, Either::Left(body)))
}

/// The kept connection if it leads to `destination` and still stands, else a new one.
async fn reach(session: &Session, destination: Destination) -> Result<Origin, Unanswered> {
    if let Some(mut kept) = session.take_origin()
        && kept.destination == destination
        && kept.requests.ready().await.is_ok()
    {
        return Ok(kept);
    }
    let stream = session.door.dial(&destination).await?;
    let limits = session.door.limits;
    // As forgiving as browsers are: a site that shows in one must not fail behind us.
    let handshake = http1::Builder::new()
        .preserve_header_case(true)
        .title_case_headers(true)
        .allow_obsolete_multiline_headers_in_responses(true)
        .allow_spaces_after_header_name_in_responses(true)
        .ignore_invalid_headers_in_responses(true)
        .max_header_size(limits.header_bytes)
        .max_buf_size(limits.header_bytes)
        .handshake(TokioIo::new(stream))
        .await;
    let (requests, connection) = handshake.map_err(Unanswered::Origin)?;
    session.door.spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to an origin ended");
        }
    });
    Ok(Origin { destination, requests })
}
