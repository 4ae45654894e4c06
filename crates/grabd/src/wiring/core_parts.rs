//! The core, with all of its components.

use std::net::SocketAddr;

use anyhow::Context;
use grabd_browser::FilterLists;
use grabd_egress::Guard;
use grabd_engine::clock::Clock;
use grabd_engine::placeholder::Placeholder;
use grabd_engine::webhooks::{Webhooks, can_decrypt_secrets};
use grabd_engine::{Core, Failpoints, Operations, Parts, Settings, cluster};
use grabd_memory::MemoryBudget;
use grabd_store::Store;

use super::images::open_images;
use super::services::{key_file, mail, open_vault, outgoing, pricing, stripe};
use crate::config::{Config, ProcessRole, operations};

/// Memory limit for cached placeholders.
const PLACEHOLDER_CACHE_BYTES: usize = 32 << 20;

/// The core, with its workers started. `address` is where this process listens, for operators.
///
/// # Errors
/// When one of its components cannot be built.
pub async fn start_core(
    config: &Config,
    store: Store,
    guard: Guard,
    memory: MemoryBudget,
    lists: &FilterLists,
    public_url: &str,
    address: SocketAddr,
) -> anyhow::Result<Core> {
    let top_up = match config.billing.top_up.is_empty() {
        true => format!("{public_url}{}", grabd_web::TOP_UP),
        false => config.billing.top_up.clone(),
    };
    let vault = open_vault(config)?;
    if !can_decrypt_secrets(&vault, &store).await? {
        // Captures do not depend on webhooks, so the service continues.
        tracing::error!(
            key_file = %key_file(config).display(),
            "webhooks cannot be signed: their secrets were encrypted with another key. Stop, restore that key file and \
             start again; if it is lost, every webhook secret must be rotated by its owner"
        );
    }
    let images = open_images(config, &store).await?;
    let parts = Parts {
        store,
        images,
        memory: memory.clone(),
        guard,
        outgoing: outgoing(config)?,
        mail: mail(config, &config.oauth(public_url).issuer)?,
        clock: Clock::system(),
        pricing: pricing(config)?,
        placeholder: Placeholder::new(PLACEHOLDER_CACHE_BYTES, memory),
        vault,
        webhooks: Webhooks::new(config.webhooks.allow_http),
        stripe: stripe(config)?,
        settings: Settings {
            public_url: public_url.to_owned(),
            requests_per_minute: config.limits.requests_per_minute,
            async_queue: config.limits.async_queue,
            image_max_bytes: config.capture.image_max_megabytes << 20,
            direct_uploads: config.images.direct_upload,
            top_up,
            sign_up: config.accounts.sign_up,
            trial_credits: config.accounts.trial_credits,
            oauth: config.oauth(public_url),
            abuse: config.abuse.admission(config.is_open()),
            retention: config.retention.settings(),
            operations: Operations {
                listed_contents: lists.contents(),
                second_factor_for_operators: config.security.require_second_factor_for_operators,
                sample_sites: config.samples.urls(),
                links: config.service.links(),
                monitors: config.monitors.limits(),
                identity: config.agent(),
                evidence_timestamp_url: config.evidence.timestamp_url(),
                has_proxies: config.proxies.enabled,
                sites: config.sites.limits(),
                ..operations(&config.abuse, &config.audit)
            },
        },
        cluster: cluster(config, address),
        failpoints: failpoints()?,
    };
    Core::start(parts).await.context("the core cannot start")
}

/// How this process belongs to a cluster, if there is one. `address` is where it listens.
fn cluster(config: &Config, address: SocketAddr) -> Option<cluster::Settings> {
    let role = match config.role {
        ProcessRole::All => cluster::Role::All,
        ProcessRole::Edge => cluster::Role::Edge,
        // A renderer has no core.
        ProcessRole::Core | ProcessRole::Renderer => cluster::Role::Core,
    };
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let bus = config.bus.settings();
    config.cluster.enabled.then(|| cluster::Settings { role, address: format!("{host} {address}"), bus })
}

/// Failures injected by a test, from `GRABD_TEST_FAILPOINTS`.
#[cfg(debug_assertions)]
fn failpoints() -> anyhow::Result<Failpoints> {
    let text = std::env::var_os("GRABD_TEST_FAILPOINTS").unwrap_or_default();
    Failpoints::parse(&text.to_string_lossy()).context("GRABD_TEST_FAILPOINTS")
}

/// Release builds have no failpoints.
#[cfg(not(debug_assertions))]
fn failpoints() -> anyhow::Result<Failpoints> {
    Ok(Failpoints::default())
}
