//! A third-party OAuth library connects with every client identification and authentication method.

use std::path::Path;

use anyhow::Result;
use grabd_tests::harness::ALLOWED;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};

use super::run_script;
use super::visitor::{PASSWORD, Visitor, start_app};

#[tokio::test(flavor = "multi_thread")]
async fn oauth_library_connects_with_every_method() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let ca_file = dir.path().join("ca.pem");
    let tls = create_certificate(&ca_file)?;
    let app = start_app(&[("webhooks.ca_file", &ca_file.display().to_string())]).await?;
    Visitor::with_account(&app, "ada@example.com").await?;
    let origin = app.service.public_url().to_owned();
    let arguments = json!({
        "origin": origin,
        "mcp": format!("{origin}/mcp"),
        "email": "ada@example.com",
        "password": PASSWORD,
        "tls": tls,
    });
    let output = run_script("oauth.mjs", &arguments).await?;
    assert_eq!(output.lines().count(), 4, "{output}");
    app.finish().await
}

/// Creates a certificate for the host of a client metadata document, and writes its CA to `ca_file`.
fn create_certificate(ca_file: &Path) -> Result<Value> {
    let mut authority = CertificateParams::new(Vec::new())?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate()?;
    std::fs::write(ca_file, authority.self_signed(&key)?.pem())?;
    let issuer = Issuer::new(authority, key);
    let (host, key) = (ALLOWED.to_string(), KeyPair::generate()?);
    let certificate = CertificateParams::new(vec![host.clone()])?.signed_by(&key, &issuer)?;
    Ok(json!({ "host": host, "cert": certificate.pem(), "key": key.serialize_pem() }))
}
