//! The secrets, and clients of other services: webhooks, payments and mail.

use std::path::PathBuf;

use anyhow::Context;
use grabd_engine::billing::stripe::Stripe;
use grabd_engine::mail::{Server, Smtp};
use grabd_engine::outgoing::OutgoingClient;
use grabd_engine::pricing::Pricing;
use grabd_engine::vault::Vault;

use crate::config::Config;

/// The file with the key that encrypts the secrets of webhooks, links, second factors and open grabs.
pub fn key_file(config: &Config) -> PathBuf {
    match config.secrets.key_file.as_os_str().is_empty() {
        true => config.data_dir.join("secrets.key"),
        false => config.secrets.key_file.clone(),
    }
}

/// What encrypts stored secrets. A missing key file is created.
///
/// # Errors
/// When the key cannot be used.
pub fn open_vault(config: &Config) -> anyhow::Result<Vault> {
    let path = key_file(config);
    if config.cluster.enabled && !path.exists() {
        anyhow::bail!(
            "secrets.key_file {} does not exist: copy the one of the other processes of the cluster to this machine; \
             `grabd admin cluster init` makes the first one",
            path.display()
        );
    }
    Vault::open(&path).context("secrets.key_file cannot be used")
}

/// The client for requests to other services.
///
/// # Errors
/// When the operator's certificates cannot be used.
pub fn outgoing(config: &Config) -> anyhow::Result<OutgoingClient> {
    let ca_file = &config.webhooks.ca_file;
    let extra_roots = match ca_file.as_os_str().is_empty() {
        true => Vec::new(),
        false => std::fs::read(ca_file).with_context(|| format!("webhooks.ca_file {}", ca_file.display()))?,
    };
    OutgoingClient::new(&extra_roots).with_context(|| format!("webhooks.ca_file {}", ca_file.display()))
}

/// The payment provider, if configured.
///
/// # Errors
/// When Stripe's URL is invalid.
pub fn stripe(config: &Config) -> anyhow::Result<Option<Stripe>> {
    let billing = &config.billing;
    let key = billing.stripe_secret_key.expose();
    if key.is_empty() {
        return Ok(None);
    }
    if billing.takes_test_payments() {
        tracing::warn!("billing.stripe_secret_key is a test key: credits can be bought without paying");
    }
    let stripe = Stripe::new(&billing.stripe_api_base, key, billing.webhook_secrets());
    stripe.context("billing.stripe_api_base cannot be used").map(Some)
}

/// The mailer, if a mail server is configured.
///
/// # Errors
/// When the configuration is invalid.
pub fn mail(config: &Config, issuer: &str) -> anyhow::Result<Option<Smtp>> {
    let mail = &config.mail;
    if mail.smtp_url.expose().is_empty() {
        return Ok(None);
    }
    let extra_roots = match mail.ca_file.as_os_str().is_empty() {
        true => Vec::new(),
        false => std::fs::read(&mail.ca_file).with_context(|| format!("mail.ca_file {}", mail.ca_file.display()))?,
    };
    let own_host = url::Url::parse(issuer).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default();
    let server =
        Server { url: mail.smtp_url.expose(), from: &mail.from, extra_roots: &extra_roots, own_host: &own_host };
    // Everything else was validated when the configuration was read.
    Smtp::new(server).map(Some).with_context(|| format!("mail.ca_file {}", mail.ca_file.display()))
}

/// The price list.
///
/// # Errors
/// When the operator's file cannot be read or is invalid. The text lists every problem.
pub fn pricing(config: &Config) -> anyhow::Result<Pricing> {
    let file = &config.pricing.file;
    if file.as_os_str().is_empty() {
        return Ok(Pricing::embedded());
    }
    let text = std::fs::read_to_string(file).with_context(|| format!("pricing.file {}", file.display()))?;
    Pricing::from_json(&text).with_context(|| format!("pricing.file {}", file.display()))
}
