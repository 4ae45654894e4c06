//! Builds everything once and passes it by argument.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use grabd_browser::{BrowserUser, Chromium, find_executable};
use grabd_domain::address::Policy;
use grabd_egress::Guard;
use grabd_engine::billing::stripe::Stripe;
use grabd_engine::clock::Clock;
use grabd_engine::mail::{Server, Smtp};
use grabd_engine::outgoing::Outgoing;
use grabd_engine::placeholder::Placeholder;
use grabd_engine::pricing::Pricing;
use grabd_engine::vault::Vault;
use grabd_engine::webhooks::Webhooks;
use grabd_engine::{Core, Failpoints, Parts, Settings};
use grabd_store::{Images, Store};

use crate::config::Config;
use crate::run_dir::{Note, run_dir};

/// Memory that drawn placeholders may take.
const PLACEHOLDER_CACHE_BYTES: usize = 32 << 20;

/// Opens the database.
///
/// # Errors
/// When it cannot be reached, with what to look at.
pub async fn open_store(config: &Config) -> anyhow::Result<Store> {
    let url = config.database_url();
    if url.starts_with("sqlite:") {
        std::fs::create_dir_all(&config.data_dir).with_context(|| {
            format!("the data directory {} cannot be made; set GRABD_DATA_DIR", config.data_dir.display())
        })?;
    }
    Store::open(&url).await.with_context(|| format!("{} cannot be opened", describe_database(config)))
}

/// The database without its password.
pub fn describe_database(config: &Config) -> String {
    match url::Url::parse(&config.database_url()) {
        Ok(mut url) if url.password().is_some() => {
            let _ = url.set_password(Some("…"));
            url.to_string()
        }
        Ok(_) | Err(_) => config.database_url(),
    }
}

/// The guard that every outgoing connection passes.
///
/// # Errors
/// When the resolver cannot be set up.
pub fn guard(config: &Config) -> anyhow::Result<Guard> {
    let egress = &config.egress;
    let policy = Policy { allow: egress.allow_cidrs.clone(), deny: egress.deny_cidrs.clone(), own: Vec::new() };
    let options = grabd_egress::Options {
        policy,
        dns: egress.dns.clone(),
        lookup_timeout: Duration::from_millis(egress.lookup_timeout_ms),
        connect_timeout: Duration::from_millis(egress.connect_timeout_ms),
    };
    Guard::new(options).context("the egress guard cannot be set up")
}

/// The pricing packet.
///
/// # Errors
/// When the operator's file cannot be read or is not valid, with every problem.
pub fn pricing(config: &Config) -> anyhow::Result<Pricing> {
    let file = &config.pricing.file;
    if file.as_os_str().is_empty() {
        return Ok(Pricing::embedded());
    }
    let text = std::fs::read_to_string(file).with_context(|| format!("pricing.file {}", file.display()))?;
    Pricing::from_json(&text).with_context(|| format!("pricing.file {}", file.display()))
}

/// Where the images lie.
pub fn images_dir(config: &Config) -> PathBuf {
    config.data_dir.join("images")
}

/// Where the key of the webhooks' secrets lies.
pub fn key_file(config: &Config) -> PathBuf {
    match config.secrets.key_file.as_os_str().is_empty() {
        true => config.data_dir.join("secrets.key"),
        false => config.secrets.key_file.clone(),
    }
}

/// What sends webhooks, with the key of its secrets.
///
/// # Errors
/// When the key cannot be used.
pub fn webhooks(config: &Config) -> anyhow::Result<Webhooks> {
    let vault = Vault::open(&key_file(config)).context("secrets.key_file cannot be used")?;
    Ok(Webhooks::new(vault, config.webhooks.allow_http))
}

/// What makes requests to others.
///
/// # Errors
/// When the operator's certificates cannot be used.
pub fn outgoing(config: &Config) -> anyhow::Result<Outgoing> {
    let ca_file = &config.webhooks.ca_file;
    let extra_roots = match ca_file.as_os_str().is_empty() {
        true => Vec::new(),
        false => std::fs::read(ca_file).with_context(|| format!("webhooks.ca_file {}", ca_file.display()))?,
    };
    Outgoing::new(&extra_roots).with_context(|| format!("webhooks.ca_file {}", ca_file.display()))
}

/// Where credits are paid for, if they can be.
///
/// # Errors
/// When Stripe's address is none.
pub fn stripe(config: &Config) -> anyhow::Result<Option<Stripe>> {
    let billing = &config.billing;
    let key = billing.stripe_secret_key.expose();
    if key.is_empty() {
        return Ok(None);
    }
    if billing.takes_test_payments() {
        tracing::warn!("billing.stripe_secret_key is one for tests: credits can be had without money");
    }
    let stripe = Stripe::new(&billing.stripe_api_base, key, billing.webhook_secrets());
    stripe.context("billing.stripe_api_base cannot be used").map(Some)
}

/// What hands letters to the operator's mail server, if they have one.
///
/// # Errors
/// When what is configured cannot be used.
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
    // What else could be wrong was found when the configuration was read.
    Smtp::new(server).map(Some).with_context(|| format!("mail.ca_file {}", mail.ca_file.display()))
}

/// The core with its workers started.
///
/// # Errors
/// When something it is made of cannot be built.
pub async fn core(config: &Config, store: Store, guard: Guard, public_url: &str) -> anyhow::Result<Core> {
    let top_up = match config.billing.top_up.is_empty() {
        true => format!("{public_url}{}", grabd_web::TOP_UP),
        false => config.billing.top_up.clone(),
    };
    let webhooks = webhooks(config)?;
    if !webhooks.secrets_open(&store).await? {
        // Captures do not depend on it, so the service runs on.
        tracing::error!(
            key_file = %key_file(config).display(),
            "webhooks cannot be signed: their secrets were encrypted with another key. Stop, put that key file back and \
             start again; if it is lost, every webhook's secret has to be rotated by its owner"
        );
    }
    let images = Images::local(images_dir(config)).context("the image directory cannot be used")?;
    let parts = Parts {
        store,
        images,
        guard,
        outgoing: outgoing(config)?,
        mail: mail(config, &config.oauth(public_url).issuer)?,
        clock: Clock::system(),
        pricing: pricing(config)?,
        placeholder: Placeholder::new(PLACEHOLDER_CACHE_BYTES),
        webhooks,
        stripe: stripe(config)?,
        settings: Settings {
            public_url: public_url.to_owned(),
            requests_per_minute: config.limits.requests_per_minute,
            async_queue: config.limits.async_queue,
            top_up,
            sign_up: config.accounts.sign_up,
            oauth: config.oauth(public_url),
        },
        failpoints: failpoints()?,
    };
    Core::start(parts).await.context("the core cannot start")
}

/// Where a test wants the service to fail, from `GRABD_TEST_FAILPOINTS`.
#[cfg(debug_assertions)]
fn failpoints() -> anyhow::Result<Failpoints> {
    let text = std::env::var_os("GRABD_TEST_FAILPOINTS").unwrap_or_default();
    Failpoints::parse(&text.to_string_lossy()).context("GRABD_TEST_FAILPOINTS")
}

/// Nobody can want what ships to fail.
#[cfg(not(debug_assertions))]
fn failpoints() -> anyhow::Result<Failpoints> {
    Ok(Failpoints::default())
}

/// What the browser is started with.
pub fn browser_options(config: &Config, launcher: Option<&Path>) -> grabd_browser::Options {
    let browser = &config.browser;
    let slots = config.slots();
    grabd_browser::Options {
        executable: executable(config),
        slots,
        spare_contexts: slots + 2,
        run_dir: run_dir(config),
        former_run_dirs: Vec::new(),
        user: browser_user(config),
        network_jail: browser.network_jail,
        launcher: launcher.map(Path::to_owned),
        settle_budget: config.settle(),
        full_page_max_height: config.capture.full_page_max_height_px,
        recycle_after: browser.recycle_grabs,
        recycle_age: Duration::from_secs(browser.recycle_seconds),
        recycle_rss_bytes: browser.recycle_megabytes << 20,
        memory_limit_bytes: browser.memory_limit_megabytes << 20,
        process_limit: browser.process_limit,
    }
}

/// The browser's program: the one that was named, else the first that is found. `None` leaves it to the browser to say
/// that there is none.
fn executable(config: &Config) -> Option<PathBuf> {
    let named = &config.browser.executable;
    if !named.as_os_str().is_empty() {
        return Some(named.clone());
    }
    let search_path = std::env::var_os("PATH").unwrap_or_default();
    find_executable(None, &search_path.to_string_lossy())
}

/// Whom the browser runs as; matters only when we are root.
pub fn browser_user(config: &Config) -> Option<BrowserUser> {
    (!config.browser.user.is_empty()).then(|| BrowserUser::Named(config.browser.user.clone()))
}

/// Starts the browser, and tries whether a page in it gets past the guard.
///
/// # Errors
/// When it does not start, with what to do, or when a page does, with the way it took.
pub async fn browser(config: &Config, guard: Guard, launcher: Option<&Path>) -> anyhow::Result<Chromium> {
    let policy = guard.policy().clone();
    let mut options = browser_options(config, launcher);
    let (note, former) = Note::begin(&config.data_dir, &options.run_dir)?;
    options.former_run_dirs = former;
    let chromium =
        Chromium::start(options, guard).await.context("the browser cannot start; `grabd doctor` says more")?;
    if let Err(error) = note.settle() {
        tracing::warn!(error = format!("{error:#}"), "the next start looks for browsers where there are none any more");
    }
    match chromium.self_test(&policy).await {
        Ok(held) => {
            tracing::info!("{held}");
            Ok(chromium)
        }
        Err(error) => {
            chromium.shutdown().await;
            Err(error).context("no page is rendered on this machine")
        }
    }
}
