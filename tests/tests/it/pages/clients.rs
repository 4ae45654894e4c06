//! Other people's OAuth library connects, with every way a client can say and prove who it is.

use std::path::Path;

use anyhow::Result;
use grabd_tests::harness::ALLOWED;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};

use super::run_script;
use super::visitor::{PASSWORD, Visitor, open_house};

#[tokio::test(flavor = "multi_thread")]
async fn a_library_connects_unattended() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let ca_file = dir.path().join("ca.pem");
    let tls = certify(&ca_file)?;
    let house = open_house(&[("webhooks.ca_file", &ca_file.display().to_string())]).await?;
    Visitor::with_account(&house, "ada@example.com").await?;
    let origin = house.service.public_url().to_owned();
    let arguments = json!({
        "origin": origin,
        "mcp": format!("{origin}/mcp"),
        "email": "ada@example.com",
        "password": PASSWORD,
        "tls": tls,
    });
    let said = run_script("oauth.mjs", &arguments).await?;
    assert_eq!(said.lines().count(), 4, "{said}");
    house.finish().await
}

/// A certificate for the host of an app's document, whose authority is left in `ca_file`.
fn certify(ca_file: &Path) -> Result<Value> {
    let mut authority = CertificateParams::new(Vec::new())?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate()?;
    std::fs::write(ca_file, authority.self_signed(&key)?.pem())?;
    let issuer = Issuer::new(authority, key);
    let (host, key) = (ALLOWED.to_string(), KeyPair::generate()?);
    let certificate = CertificateParams::new(vec![host.clone()])?.signed_by(&key, &issuer)?;
    Ok(json!({ "host": host, "cert": certificate.pem(), "key": key.serialize_pem() }))
}
