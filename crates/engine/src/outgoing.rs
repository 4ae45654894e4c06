//! Requests that the service itself makes, to addresses that somebody else chose: one connection that the guard made, one
//! request, no redirect.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use grabd_domain::target::{TargetHost, TargetUrl};
use grabd_egress::{Guard, Refusal};
use http::header::HOST;
use http::response::Parts;
use http::{Request, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Most bytes of an answer's head.
const HEAD_BYTES: usize = 16 << 10;

/// Makes the requests. Cheap to clone.
#[derive(Clone)]
pub struct Outgoing {
    tls: TlsConnector,
}

/// Why no requests can be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The extra certificates are none.
    #[error("certificates that cannot be read")]
    Roots(#[source] io::Error),
    /// This build of TLS cannot do what it must.
    #[error("TLS cannot be set up")]
    Tls(#[source] tokio_rustls::rustls::Error),
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
    #[error("no answer within {} s", .0.as_secs())]
    TimedOut(Duration),
    /// The address cannot be asked for.
    #[error("the request cannot be made: {0}")]
    Request(#[source] http::Error),
}

impl Outgoing {
    /// Trusts these certificate authorities, as PEM, beside the public ones.
    ///
    /// # Errors
    /// When the extra certificates are none.
    pub fn new(extra_roots: &[u8]) -> Result<Self, Error> {
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        for certificate in CertificateDer::pem_slice_iter(extra_roots) {
            let certificate = certificate.map_err(|error| Error::Roots(io::Error::other(error)))?;
            roots.add(certificate).map_err(|error| Error::Roots(io::Error::other(error)))?;
        }
        if !extra_roots.is_empty() && roots.len() == webpki_roots::TLS_SERVER_ROOTS.len() {
            return Err(Error::Roots(io::Error::other("there is no certificate in it")));
        }
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(Error::Tls)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { tls: TlsConnector::from(Arc::new(config)) })
    }

    /// Makes one request of this address within the limit and lets `read` have the answer. The name is looked up and its
    /// addresses are checked anew each time, and a redirect is an answer like any other: it is never followed.
    ///
    /// # Errors
    /// When no answer came.
    pub(crate) async fn ask<T, F>(
        &self,
        guard: &Guard,
        url: &TargetUrl,
        request: http::request::Builder,
        body: Bytes,
        limit: Duration,
        read: impl FnOnce(Parts, Incoming) -> F,
    ) -> Result<T, Unanswered>
    where
        F: Future<Output = T>,
    {
        let request = addressed(url, request, body).map_err(Unanswered::Request)?;
        let asked = async {
            let host = url.host();
            let stream = guard.connect(&host, url.port()).await.map_err(Unanswered::Connection)?;
            if !url.is_https() {
                return exchange(stream, request, read).await;
            }
            let name = match host {
                TargetHost::Address(address) => ServerName::IpAddress(address.into()),
                TargetHost::Name(name) => {
                    ServerName::try_from(name).map_err(|error| Unanswered::Tls(io::Error::other(error)))?
                }
            };
            exchange(self.tls.connect(name, stream).await.map_err(Unanswered::Tls)?, request, read).await
        };
        timeout(limit, asked).await.unwrap_or(Err(Unanswered::TimedOut(limit)))
    }
}

impl fmt::Debug for Outgoing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Outgoing")
    }
}

fn addressed(
    url: &TargetUrl,
    request: http::request::Builder,
    body: Bytes,
) -> Result<Request<Full<Bytes>>, http::Error> {
    let uri: Uri = url.as_str().parse()?;
    let host = uri.authority().map(|authority| authority.as_str().to_owned()).unwrap_or_default();
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    request.uri(path).header(HOST, host).body(Full::from(body))
}

async fn exchange<S, T, F>(
    stream: S,
    request: Request<Full<Bytes>>,
    read: impl FnOnce(Parts, Incoming) -> F,
) -> Result<T, Unanswered>
where
    S: AsyncRead + AsyncWrite + Unpin,
    F: Future<Output = T>,
{
    let mut http = http1::Builder::new();
    http.max_buf_size(HEAD_BYTES);
    let (mut sender, connection) = http.handshake(TokioIo::new(stream)).await.map_err(Unanswered::Http)?;
    let mut connection = pin!(connection.fuse());
    let asked = async { sender.send_request(request).await.map_err(Unanswered::Http) };
    let (head, body) = beside(&mut connection, asked).await?.into_parts();
    Ok(beside(&mut connection, read(head, body)).await)
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
