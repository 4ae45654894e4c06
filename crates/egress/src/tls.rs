//! TLS on connections that the guard has opened.

use std::fmt;
use std::io;
use std::sync::Arc;

use grabd_domain::target::TargetHost;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, Error, RootCertStore};

/// Why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The extra certificates are invalid.
    #[error("the certificates cannot be read")]
    Roots(#[source] io::Error),
    /// The TLS library does not support the required protocol versions.
    #[error("TLS cannot be set up")]
    Tls(#[source] Error),
}

/// The client's side of TLS, for HTTP/1.1. Cheap to clone.
#[derive(Clone)]
pub struct ClientTls(TlsConnector);

impl ClientTls {
    /// Trusts these certificate authorities (PEM) in addition to the public ones.
    ///
    /// # Errors
    /// When the extra certificates are invalid.
    pub fn new(extra_roots: &[u8]) -> Result<Self, TlsError> {
        let mut roots = public_roots();
        for certificate in CertificateDer::pem_slice_iter(extra_roots) {
            let certificate = certificate.map_err(|error| TlsError::Roots(io::Error::other(error)))?;
            roots.add(certificate).map_err(|error| TlsError::Roots(io::Error::other(error)))?;
        }
        if !extra_roots.is_empty() && roots.len() == webpki_roots::TLS_SERVER_ROOTS.len() {
            return Err(TlsError::Roots(io::Error::other("it contains no certificate")));
        }
        Self::trusting(roots)
    }

    fn trusting(roots: RootCertStore) -> Result<Self, TlsError> {
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Tls)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(TlsConnector::from(Arc::new(config))))
    }

    /// Begins TLS with `host` on a connection to it.
    ///
    /// # Errors
    /// When the handshake fails, or the certificate is not one of the host.
    pub async fn connect(&self, host: TargetHost, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let name = match host {
            TargetHost::Address(address) => ServerName::IpAddress(address.into()),
            TargetHost::Name(name) => ServerName::try_from(name).map_err(io::Error::other)?,
        };
        self.0.connect(name, stream).await
    }
}

/// Trusts the public certificate authorities.
impl Default for ClientTls {
    fn default() -> Self {
        Self::trusting(public_roots()).expect("ring supports the default versions of TLS")
    }
}

fn public_roots() -> RootCertStore {
    RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() }
}

impl fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientTls")
    }
}
