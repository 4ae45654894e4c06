//! `grabd admin cluster …`.

use std::fs::DirBuilder;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use clap::Subcommand;
use grabd_engine::clock::Clock;
use grabd_engine::vault::Vault;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use serde_json::json;
use time::{Duration, OffsetDateTime};

use super::output::CommandOutput;
use crate::serve::{CORE_NAME, RENDERER_NAME};

/// How long the certificates are valid.
const VALID: Duration = Duration::days(3650);

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Make the certificate authority of a cluster, the certificates of its cores and renderers, and the key file
    /// that its cores and edges share.
    Init {
        /// A new or empty directory.
        directory: PathBuf,
    },
}

/// A certificate and its key, as PEM.
struct Certified {
    certificate: String,
    key: String,
}

pub(super) fn run(command: &Command) -> anyhow::Result<CommandOutput> {
    let Command::Init { directory } = command;
    create_empty(directory)?;
    let (ca, issuer) = authority()?;
    let core = certify(&issuer, CORE_NAME, ExtendedKeyUsagePurpose::ServerAuth)?;
    let renderer = certify(&issuer, RENDERER_NAME, ExtendedKeyUsagePurpose::ClientAuth)?;
    let files = [
        ("ca.pem", &ca.certificate, "certificate authority: on every core and renderer"),
        ("ca-key.pem", &ca.key, "key of the certificate authority: on no machine of the cluster, kept offline"),
        ("core.pem", &core.certificate, "certificate of the cores"),
        ("core-key.pem", &core.key, "key of the cores"),
        ("renderer.pem", &renderer.certificate, "certificate of the renderers"),
        ("renderer-key.pem", &renderer.key, "key of the renderers"),
    ];
    let mut lines = Vec::new();
    for (name, content, purpose) in files {
        write(&directory.join(name), content)?;
        lines.push(format!("  {name:17} {purpose}"));
    }
    Vault::open(&directory.join("secrets.key")).context("secrets.key cannot be written")?;
    lines.push(format!("  {:17} secrets.key_file of every core and edge, unless they have one already", "secrets.key"));
    let text = format!("Made in {}, valid for ten years:\n\n{}", directory.display(), lines.join("\n"));
    let names: Vec<&str> = files.iter().map(|(name, ..)| *name).chain(["secrets.key"]).collect();
    Ok(CommandOutput::ok(text, json!({ "directory": directory, "files": names })))
}

fn create_empty(directory: &Path) -> anyhow::Result<()> {
    let created = DirBuilder::new().recursive(true).mode(0o700).create(directory);
    created.with_context(|| format!("{} cannot be created", directory.display()))?;
    let is_empty = std::fs::read_dir(directory)?.next().is_none();
    ensure!(is_empty, "{} is not empty; name another directory", directory.display());
    Ok(())
}

fn authority() -> anyhow::Result<(Certified, Issuer<'static, KeyPair>)> {
    let mut params = params("grabd cluster", Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?.pem();
    let certified = Certified { certificate, key: key.serialize_pem() };
    Ok((certified, Issuer::new(params, key)))
}

/// Cores have server certificates and renderers client certificates, so that neither can act as the other.
fn certify(
    issuer: &Issuer<'static, KeyPair>,
    name: &str,
    purpose: ExtendedKeyUsagePurpose,
) -> anyhow::Result<Certified> {
    let mut params = params(name, vec![name.to_owned()])?;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![purpose];
    let key = KeyPair::generate()?;
    Ok(Certified { certificate: params.signed_by(&key, issuer)?.pem(), key: key.serialize_pem() })
}

fn params(name: &str, names: Vec<String>) -> anyhow::Result<CertificateParams> {
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    let now = OffsetDateTime::from_unix_timestamp(Clock::system().now().as_ms() / 1000)?;
    // Clocks may differ.
    params.not_before = now - Duration::days(1);
    params.not_after = now + VALID;
    Ok(params)
}

fn write(path: &Path, content: &str) -> anyhow::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600).open(path);
    let written = file.and_then(|mut file| file.write_all(content.as_bytes()));
    written.with_context(|| format!("{} cannot be written", path.display()))
}
