//! Webhooks: signed messages about asynchronous live grabs that have ended.
//!
//! `endpoints` and `deliveries` are what callers do; `sender` carries the messages out: `message` composes one, `sign`
//! signs it with the endpoint's `secret`, and `post` makes one attempt through the guard.

mod deliveries;
mod endpoints;
mod message;
mod post;
mod secret;
pub(crate) mod sender;
mod sign;

use std::fmt;
use std::io;
use std::sync::Arc;

use grabd_store::Store;
use tokio::sync::Notify;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::vault::Vault;
pub(crate) use deliveries::{DeliveriesRequest, list_deliveries, redeliver, send_test};
pub(crate) use endpoints::{change, get, list, register, remove, rotate_secret};
pub(crate) use secret::Secret;

/// What the use-cases and the sender share.
pub struct Webhooks {
    vault: Vault,
    tls: TlsConnector,
    allow_http: bool,
    /// Rung when something is due; may be lost, since the sender looks by itself too.
    bell: Notify,
}

/// What an operator decides about webhooks.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// May messages go over plain http? For development.
    pub allow_http: bool,
    /// Certificate authorities to trust beside the public ones, as PEM.
    pub extra_roots: Vec<u8>,
}

/// Why webhooks cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The extra certificates are none.
    #[error("certificates that cannot be read")]
    Roots(#[source] io::Error),
    /// This build of TLS cannot do what it must.
    #[error("TLS cannot be set up")]
    Tls(#[source] tokio_rustls::rustls::Error),
}

impl Webhooks {
    /// With secrets in this vault.
    ///
    /// # Errors
    /// When the extra certificates are none.
    pub fn new(vault: Vault, options: &Options) -> Result<Self, Error> {
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        for certificate in CertificateDer::pem_slice_iter(&options.extra_roots) {
            let certificate = certificate.map_err(|error| Error::Roots(io::Error::other(error)))?;
            roots.add(certificate).map_err(|error| Error::Roots(io::Error::other(error)))?;
        }
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(Error::Tls)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let tls = TlsConnector::from(Arc::new(config));
        Ok(Self { vault, tls, allow_http: options.allow_http, bell: Notify::new() })
    }

    /// Do the secrets that are stored open with this vault's key? With none stored, nothing speaks against it.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn secrets_open(&self, store: &Store) -> Result<bool, grabd_store::Error> {
        let newest = store.newest_secret().await?;
        Ok(newest.is_none_or(|(endpoint, sealed)| Secret::unseal(&self.vault, &sealed, endpoint).is_ok()))
    }

    /// Something is due.
    pub(crate) fn ring(&self) {
        self.bell.notify_one();
    }
}

impl fmt::Debug for Webhooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhooks").field("allow_http", &self.allow_http).finish_non_exhaustive()
    }
}
