//! Plain http: one request at a time, each to a checked address, with streamed bodies.

use http::uri::{Authority, PathAndQuery};
use http::{HeaderValue, Request, Response, StatusCode, Uri, Version};
use http_body_util::Either;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;

use super::headers;
use super::listener_limits::HEADER_FIELDS;
use super::session::{Body, Origin, RequestError, Session};
use super::target::{Destination, Malformed};

/// Forwards `request` and returns the origin's response.
pub(super) async fn respond(
    session: &Session,
    destination: Destination,
    host: &Authority,
    path: PathAndQuery,
    request: Request<Incoming>,
) -> Result<Response<Body>, RequestError> {
    let host = HeaderValue::from_str(host.as_str()).map_err(|_| Malformed::Host)?;
    if session.state.is_listed(&destination) {
        return Err(RequestError::Listed);
    }
    let mut origin = connect(session, destination).await?;
    let (mut head, body) = request.into_parts();
    head.headers = headers::for_origin(head.headers, &host);
    head.uri = Uri::from(path);
    head.version = Version::HTTP_11;
    head.extensions.remove::<OnUpgrade>();
    let sent = origin.requests.send_request(Request::from_parts(head, body)).await;
    let (mut head, body) = sent.map_err(RequestError::Origin)?.into_parts();
    // Neither was requested. The browser would switch protocols, or attribute the authentication request to the proxy.
    if matches!(head.status, StatusCode::SWITCHING_PROTOCOLS | StatusCode::PROXY_AUTHENTICATION_REQUIRED) {
        return Err(RequestError::NotAnOrigin);
    }
    session.set_origin(origin);
    head.headers = headers::for_browser(head.headers);
    head.version = Version::HTTP_11;
    head.extensions.remove::<OnUpgrade>();
    Ok(Response::from_parts(head, Either::Left(body)))
}

/// Returns the kept connection if it leads to `destination` and is still open, else a new one.
async fn connect(session: &Session, destination: Destination) -> Result<Origin, RequestError> {
    if let Some(mut kept) = session.take_origin()
        && kept.destination == destination
        && kept.requests.ready().await.is_ok()
    {
        return Ok(kept);
    }
    let stream = session.state.dial(&destination).await?;
    let limits = session.state.limits;
    // As lenient as browsers, so that a site that works in a browser also works through the proxy.
    let handshake = http1::Builder::new()
        .preserve_header_case(true)
        .title_case_headers(true)
        .allow_obsolete_multiline_headers_in_responses(true)
        .allow_spaces_after_header_name_in_responses(true)
        .ignore_invalid_headers_in_responses(true)
        .max_headers(HEADER_FIELDS)
        .max_header_size(limits.header_bytes)
        .max_buf_size(limits.header_bytes)
        .handshake(TokioIo::new(stream))
        .await;
    let (requests, connection) = handshake.map_err(RequestError::Origin)?;
    session.state.spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to an origin ended");
        }
    });
    Ok(Origin { destination, requests })
}
