//! Serves the page over TLS and HTTP/2, behind a relay that delays it.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use rcgen::{CertificateParams, KeyPair, PublicKeyData};
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::server::ResolvesServerCertUsingSni;
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use super::relay::DelayingRelay;
use super::shop;

/// The served page. It stops when dropped.
pub(super) struct NetworkSite {
    relay: DelayingRelay,
    /// The hash of the key of all certificates, as Chromium reads it: SHA-256 of the `SubjectPublicKeyInfo`, in base64.
    pub(super) key_hash: String,
    _task: AbortOnDropHandle<()>,
}

impl NetworkSite {
    /// Serves the page on free ports of this address. All of its hosts have this address.
    pub(super) async fn start(address: IpAddr, round_trip: Duration) -> Result<Self> {
        let (acceptor, key_hash) = create_certificates()?;
        let listener = TcpListener::bind((address, 0)).await?;
        let relay = DelayingRelay::start(address, listener.local_addr()?, round_trip).await?;
        let router = Router::new()
            .route("/", get(document))
            .route("/style.css", get(style))
            .route("/app.js", get(script))
            .route("/late.json", get(late_data))
            .route("/tile/{number}", get(tile))
            .with_state(relay.address.port());
        let task = TaskTracker::new().spawn(async move {
            // It ends with the task.
            let _ = serve(listener, acceptor, router).await;
        });
        Ok(Self { relay, key_hash, _task: AbortOnDropHandle::new(task) })
    }

    pub(super) fn url(&self) -> String {
        let [host, ..] = shop::HOSTS;
        format!("https://{host}:{}/", self.relay.address.port())
    }
}

async fn serve(listener: TcpListener, acceptor: TlsAcceptor, router: Router) -> io::Result<()> {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await?;
        let (acceptor, router) = (acceptor.clone(), router.clone());
        connections.spawn(async move {
            if stream.set_nodelay(true).is_err() {
                return;
            }
            // Clients that do not trust the certificate end the handshake.
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let builder = Builder::new(TokioExecutor::new());
            // The client may close the connection at any time.
            let _ = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router)).await;
        });
    }
}

/// Creates a certificate for each host, all with the same key. Returns the hash of the key, too.
fn create_certificates() -> Result<(TlsAcceptor, String)> {
    let key = KeyPair::generate()?;
    let signing_key = ring::sign::any_supported_type(&PrivateKeyDer::Pkcs8(key.serialize_der().into()))?;
    let mut certificates = ResolvesServerCertUsingSni::new();
    for host in shop::HOSTS {
        let certificate = CertificateParams::new(vec![host.to_owned()])?.self_signed(&key)?;
        certificates.add(host, CertifiedKey::new(vec![certificate.der().clone()], Arc::clone(&signing_key)))?;
    }
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(certificates));
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let key_hash = STANDARD.encode(Sha256::digest(key.subject_public_key_info()));
    Ok((TlsAcceptor::from(Arc::new(config)), key_hash))
}

fn answer(media_type: &'static str, body: String) -> Response {
    ([(CONTENT_TYPE, media_type), (ACCESS_CONTROL_ALLOW_ORIGIN, "*")], body).into_response()
}

async fn document(State(port): State<u16>) -> Response {
    answer("text/html; charset=utf-8", shop::document(port))
}

async fn style() -> Response {
    answer("text/css", shop::style())
}

async fn script(State(port): State<u16>) -> Response {
    answer("text/javascript", shop::script(port))
}

async fn late_data() -> Response {
    answer("application/json", shop::late_data())
}

async fn tile(Path(number): Path<u32>) -> Response {
    match number < shop::TILES {
        true => answer("image/svg+xml", shop::tile(number)),
        false => StatusCode::NOT_FOUND.into_response(),
    }
}
