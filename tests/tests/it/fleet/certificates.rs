//! Mutual TLS between cores and renderers.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result};
use tokio::process::Command;
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

use super::processes::{TestCluster, file, output_of};
use super::renderer::HeldSession;
use crate::crash_recovery::service::grabd_binary;

/// The name in the certificates of cores.
const CORE: &str = "core.grabd.internal";

async fn init(directory: &Path) -> Result<String> {
    output_of(Command::new(grabd_binary()?).args(["admin", "cluster", "init"]).arg(directory)).await
}

fn tls(authority: &Path, certificates: Option<(&Path, &str)>) -> ClientTlsConfig {
    let tls =
        ClientTlsConfig::new().domain_name(CORE).ca_certificate(Certificate::from_pem(file(authority, "ca.pem").1));
    match certificates {
        Some((directory, holder)) => {
            let certificate = file(directory, &format!("{holder}.pem")).1;
            tls.identity(Identity::from_pem(certificate, file(directory, &format!("{holder}-key.pem")).1))
        }
        None => tls,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_renderers_of_the_cluster_can_attach() -> Result<()> {
    let cluster = TestCluster::start().await?;
    let (own, foreign) = (cluster.dir.path().join("own"), cluster.dir.path().join("foreign"));
    let text = init(&own).await?;
    init(&foreign).await?;
    for name in ["ca.pem", "ca-key.pem", "core.pem", "core-key.pem", "renderer.pem", "renderer-key.pem", "secrets.key"]
    {
        assert!(text.contains(name), "{text}");
        let mode = std::fs::metadata(own.join(name))?.permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    assert!(init(&own).await.is_err(), "nothing is overwritten");

    let path = |name: &str| file(&own, name).0.display().to_string();
    let settings = [
        ("GRABD_CLUSTER__CA_FILE", path("ca.pem")),
        ("GRABD_CLUSTER__CERT_FILE", path("core.pem")),
        ("GRABD_CLUSTER__KEY_FILE", path("core-key.pem")),
    ];
    let settings: Vec<_> = settings.iter().map(|(key, value)| (*key, value.as_str())).collect();
    let core = cluster.core_with("core", &settings).await?;
    let address = core.renderers();
    let secure = async |tls: ClientTlsConfig| {
        let channel = Endpoint::from_shared(format!("https://{address}"))?.tls_config(tls)?.connect().await?;
        anyhow::Ok(HeldSession::attach(channel).await?)
    };
    for (case, tls) in [
        ("a certificate of another authority", tls(&own, Some((&foreign, "renderer")))),
        ("a core of another authority", tls(&foreign, Some((&own, "renderer")))),
        ("the certificate of a core", tls(&own, Some((&own, "core")))),
        ("no certificate", tls(&own, None)),
    ] {
        assert!(secure(tls).await.is_err(), "{case} was accepted");
    }
    let plain = Endpoint::from_shared(format!("http://{address}"))?;
    let plain = async { anyhow::Ok(HeldSession::attach(plain.connect().await?).await?) }.await;
    assert!(plain.is_err(), "plain text was accepted");
    let attached = secure(tls(&own, Some((&own, "renderer")))).await.context("a renderer of the cluster")?;
    core.wait_until_ready(&cluster.client).await?;
    drop(attached);
    core.stop().await?;
    cluster.finish().await;
    Ok(())
}
