//! HTTP client for the service's own requests to URLs chosen by others. Each request uses a new connection opened by
//! the address guard. Redirects are not followed.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use grabd_domain::target::TargetUrl;
/// Why the client cannot be built.
pub use grabd_egress::TlsError as Error;
use grabd_egress::{ClientTls, EgressError, Guard};
use http::header::HOST;
use http::response::Parts;
use http::{Request, Uri};
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

/// Maximum size of a response head.
const HEAD_BYTES: usize = 16 << 10;

/// HTTP/1.1 client. Cheap to clone.
#[derive(Clone)]
pub struct OutgoingClient {
    tls: ClientTls,
}

/// Why a request got no response.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    /// The connection failed or was refused by the guard.
    #[error("no connection: {0}")]
    Connection(EgressError),
    /// The TLS handshake failed.
    #[error("TLS failed: {0}")]
    Tls(#[source] io::Error),
    /// The response is not HTTP, or the connection broke.
    #[error("HTTP failed: {0}")]
    Http(#[source] hyper::Error),
    /// The time limit was exceeded.
    #[error("no response within {} s", .0.as_secs())]
    TimedOut(Duration),
    /// The request cannot be built for this URL.
    #[error("the request cannot be made: {0}")]
    Request(#[source] http::Error),
}

impl OutgoingClient {
    /// Creates a client that trusts these certificate authorities (PEM) in addition to the public ones.
    ///
    /// # Errors
    /// When the extra certificates are invalid.
    pub fn new(extra_roots: &[u8]) -> Result<Self, Error> {
        Ok(Self { tls: ClientTls::new(extra_roots)? })
    }

    /// Sends one request within the time limit and passes the response to `read`. The host is resolved and its
    /// addresses are checked on every call. Redirects are returned like any other response.
    ///
    /// # Errors
    /// When no response was received.
    pub(crate) async fn send<T, F, B>(
        &self,
        guard: &Guard,
        url: &TargetUrl,
        request: http::request::Builder,
        body: B,
        limit: Duration,
        read: impl FnOnce(Parts, Incoming) -> F,
    ) -> Result<T, RequestError>
    where
        F: Future<Output = T>,
        B: Body<Data = Bytes> + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let request = build_request(url, request, body).map_err(RequestError::Request)?;
        let exchange = async {
            let host = url.host();
            let stream = guard.connect(&host, url.port()).await.map_err(RequestError::Connection)?;
            if !url.is_https() {
                return send_on(stream, request, read).await;
            }
            send_on(self.tls.connect(host, stream).await.map_err(RequestError::Tls)?, request, read).await
        };
        timeout(limit, exchange).await.unwrap_or(Err(RequestError::TimedOut(limit)))
    }
}

impl fmt::Debug for OutgoingClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OutgoingClient")
    }
}

fn build_request<B>(url: &TargetUrl, request: http::request::Builder, body: B) -> Result<Request<B>, http::Error> {
    let uri: Uri = url.as_str().parse()?;
    let host = uri.authority().map(|authority| authority.as_str().to_owned()).unwrap_or_default();
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    request.uri(path).header(HOST, host).body(body)
}

async fn send_on<S, T, F, B>(
    stream: S,
    request: Request<B>,
    read: impl FnOnce(Parts, Incoming) -> F,
) -> Result<T, RequestError>
where
    S: AsyncRead + AsyncWrite + Unpin,
    F: Future<Output = T>,
    B: Body<Data = Bytes> + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let mut http = http1::Builder::new();
    http.max_buf_size(HEAD_BYTES);
    let (mut sender, connection) = http.handshake(TokioIo::new(stream)).await.map_err(RequestError::Http)?;
    let mut connection = pin!(connection.fuse());
    let response = async { sender.send_request(request).await.map_err(RequestError::Http) };
    let (head, body) = drive(&mut connection, response).await?.into_parts();
    Ok(drive(&mut connection, read(head, body)).await)
}

/// Polls the connection while `work` runs. When the connection ends, `work` continues with the data already received.
async fn drive<T>(mut connection: impl Future + Unpin, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    tokio::select! {
        biased;
        done = &mut work => done,
        _ = &mut connection => work.await,
    }
}
