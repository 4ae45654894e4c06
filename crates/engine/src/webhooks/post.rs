//! One attempt: a connection that the guard made, one request, and as much of the answer as matters.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use grabd_domain::target::{TargetHost, TargetUrl};
use grabd_domain::webhooks::{ANSWER_BYTES, ATTEMPT_LIMIT};
use grabd_egress::{Guard, Refusal};
use http::header::{CONTENT_TYPE, HOST, RETRY_AFTER, USER_AGENT};
use http::{HeaderValue, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

const AGENT: &str = "grabd-webhooks/1.0";

/// Most bytes of an answer's head.
const HEAD_BYTES: usize = 16 << 10;
/// How long an answer's body is listened to once its status is known.
const READ_LIMIT: Duration = Duration::from_secs(1);

/// What is sent.
#[derive(Debug)]
pub(crate) struct Envelope {
    /// `webhook-id`.
    pub(crate) id: String,
    /// `webhook-timestamp`.
    pub(crate) seconds: i64,
    /// `webhook-signature`.
    pub(crate) signature: String,
    /// The message.
    pub(crate) body: String,
}

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) retry_after: Option<HeaderValue>,
}

/// Why nothing came back.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unanswered {
    /// There was no connection, or there must be none.
    #[error("no connection: {0}")]
    Connection(Refusal),
    /// The other side is not who it should be.
    #[error("TLS failed: {0}")]
    Tls(#[source] io::Error),
    /// The other side does not speak HTTP, or stopped to.
    #[error("HTTP failed: {0}")]
    Http(#[source] hyper::Error),
    /// It took too long.
    #[error("no answer within {} s", ATTEMPT_LIMIT.as_secs())]
    TimedOut,
    /// The address cannot be asked for.
    #[error("the request cannot be made: {0}")]
    Request(#[source] http::Error),
}

/// Makes one attempt. The name is looked up and its addresses are checked anew at each of them, and a redirect is an
/// answer like any other: it is never followed.
///
/// # Errors
/// When no answer came.
pub(crate) async fn post(
    guard: &Guard,
    tls: &TlsConnector,
    url: &TargetUrl,
    envelope: Envelope,
) -> Result<Answer, Unanswered> {
    timeout(ATTEMPT_LIMIT, attempt(guard, tls, url, envelope)).await.unwrap_or(Err(Unanswered::TimedOut))
}

async fn attempt(guard: &Guard, tls: &TlsConnector, url: &TargetUrl, envelope: Envelope) -> Result<Answer, Unanswered> {
    let request = request(url, envelope).map_err(Unanswered::Request)?;
    let host = url.host();
    let stream = guard.connect(&host, url.port()).await.map_err(Unanswered::Connection)?;
    if !url.is_https() {
        return exchange(stream, request).await;
    }
    let name = match host {
        TargetHost::Address(address) => ServerName::IpAddress(address.into()),
        TargetHost::Name(name) => {
            ServerName::try_from(name).map_err(|error| Unanswered::Tls(io::Error::other(error)))?
        }
    };
    exchange(tls.connect(name, stream).await.map_err(Unanswered::Tls)?, request).await
}

fn request(url: &TargetUrl, envelope: Envelope) -> Result<Request<Full<Bytes>>, http::Error> {
    let uri: Uri = url.as_str().parse()?;
    let host = uri.authority().map(|authority| authority.as_str().to_owned()).unwrap_or_default();
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    Request::post(path)
        .header(HOST, host)
        .header(CONTENT_TYPE, "application/json")
        .header(USER_AGENT, AGENT)
        .header("webhook-id", envelope.id)
        .header("webhook-timestamp", envelope.seconds)
        .header("webhook-signature", envelope.signature)
        .body(Full::from(envelope.body))
}

async fn exchange<S>(stream: S, request: Request<Full<Bytes>>) -> Result<Answer, Unanswered>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut http = http1::Builder::new();
    http.max_buf_size(HEAD_BYTES);
    let (mut sender, connection) = http.handshake(TokioIo::new(stream)).await.map_err(Unanswered::Http)?;
    let asked = async move {
        let response = sender.send_request(request).await.map_err(Unanswered::Http)?;
        let (head, body) = response.into_parts();
        let answer = Answer { status: head.status, retry_after: head.headers.get(RETRY_AFTER).cloned() };
        Ok((answer, body))
    };
    let mut connection = pin!(connection.fuse());
    let (answer, body) = beside(&mut connection, asked).await?;
    // The status is the answer. Whatever else comes is taken for politeness, so that the other side can finish.
    let read = beside(&mut connection, discard(body));
    drop(timeout(READ_LIMIT, read).await);
    Ok(answer)
}

async fn discard(mut body: Incoming) {
    let mut left = ANSWER_BYTES;
    while left > 0 && !body.is_end_stream() {
        let Some(Ok(frame)) = body.frame().await else { return };
        left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
    }
}

/// Drives the connection as long as the work lasts; a connection that has ended leaves what it had received.
async fn beside<T>(mut connection: impl Future + Unpin, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    tokio::select! {
        biased;
        done = &mut work => done,
        _ = &mut connection => work.await,
    }
}

#[cfg(test)]
#[path = "post_tests.rs"]
mod tests;
