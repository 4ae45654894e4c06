//! TLS in front of a server of a test.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Result;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

/// A listener whose certificate is from an authority of its own. It stops when dropped.
pub struct TlsFront {
    address: SocketAddr,
    authority: String,
    _task: AbortOnDropHandle<()>,
}

impl TlsFront {
    /// Forwards decrypted connections to a server.
    ///
    /// # Errors
    /// If it cannot listen.
    pub async fn start(to: SocketAddr) -> Result<Self> {
        let (pem, acceptor) = create_certificate()?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let task = TaskTracker::new().spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                connections.spawn(async move {
                    // Clients that do not trust the certificate end the handshake.
                    let Ok(mut client) = acceptor.accept(client).await else { return };
                    if let Ok(mut server) = TcpStream::connect(to).await {
                        // Either side may close the connection at any time.
                        let _ = copy_bidirectional(&mut client, &mut server).await;
                    }
                });
            }
        });
        Ok(Self { address, authority: pem, _task: AbortOnDropHandle::new(task) })
    }

    /// The origin.
    pub fn origin(&self) -> String {
        format!("https://{}", self.address)
    }

    /// The certificate of the authority, as PEM.
    pub fn authority(&self) -> &str {
        &self.authority
    }
}

/// Creates a certificate authority, and a TLS acceptor for 127.0.0.1 with a certificate from it. Returns the authority as
/// PEM.
pub(crate) fn create_certificate() -> Result<(String, TlsAcceptor)> {
    let mut authority = CertificateParams::new(Vec::new())?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate()?;
    let pem = authority.self_signed(&key)?.pem();
    let issuer = Issuer::new(authority, key);
    let key = KeyPair::generate()?;
    let certificate = CertificateParams::new(vec!["127.0.0.1".to_owned()])?.signed_by(&key, &issuer)?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], PrivateKeyDer::Pkcs8(key.serialize_der().into()))?;
    Ok((pem, TlsAcceptor::from(Arc::new(config))))
}
