//! Mutual TLS between the cores and renderers of a cluster, with the cluster's own certificate authority.
//!
//! A certificate says whether its holder is a core or a renderer, and not on which machine: machines come and go.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity, ServerTlsConfig};

use crate::config::{Cluster, TlsFiles};

/// The name in the certificates of cores.
pub(crate) const CORE: &str = "core.grabd.internal";
/// The name in the certificates of renderers.
pub(crate) const RENDERER: &str = "renderer.grabd.internal";

/// Time limit of a TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(5);

/// The settings of the listener of a core. `None`: plain text.
pub(super) fn server(cluster: &Cluster) -> anyhow::Result<Option<ServerTlsConfig>> {
    let Some(files) = cluster.tls_files() else { return Ok(None) };
    let (ca, identity) = read(files)?;
    Ok(Some(ServerTlsConfig::new().client_ca_root(ca).identity(identity).timeout(HANDSHAKE)))
}

/// Makes the endpoints of cores.
pub(super) fn endpoints(
    cluster: &Cluster,
) -> anyhow::Result<impl Fn(SocketAddr) -> Result<Endpoint, String> + Send + Sync + 'static> {
    let tls = match cluster.tls_files() {
        None => None,
        Some(files) => {
            let (ca, identity) = read(files)?;
            let tls = ClientTlsConfig::new().ca_certificate(ca).identity(identity).domain_name(CORE);
            Some(tls.timeout(HANDSHAKE))
        }
    };
    Ok(move |core: SocketAddr| match &tls {
        None if !core.ip().is_loopback() => Err(format!(
            "{core} is not on this machine, so plain text is not allowed: set GRABD_CLUSTER__CA_FILE, \
             GRABD_CLUSTER__CERT_FILE and GRABD_CLUSTER__KEY_FILE"
        )),
        None => Endpoint::from_shared(format!("http://{core}")).map_err(|error| error.to_string()),
        Some(tls) => Endpoint::from_shared(format!("https://{core}"))
            .and_then(|endpoint| endpoint.tls_config(tls.clone()))
            .map_err(|error| error.to_string()),
    })
}

fn read(TlsFiles { ca, cert, key }: TlsFiles<'_>) -> anyhow::Result<(Certificate, Identity)> {
    let read = |setting: &str, path: &Path| {
        std::fs::read(path).with_context(|| format!("cluster.{setting} {} cannot be read", path.display()))
    };
    let ca = Certificate::from_pem(read("ca_file", ca)?);
    Ok((ca, Identity::from_pem(read("cert_file", cert)?, read("key_file", key)?)))
}
