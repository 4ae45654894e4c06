//! Builds all components, which are passed by argument.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use grabd_browser::{BrowserUser, Chromium, FilterLists, FrameMode, ListReport, find_executable};
use grabd_domain::address::Policy;
use grabd_egress::Guard;
use grabd_engine::billing::stripe::Stripe;
use grabd_engine::clock::Clock;
use grabd_engine::mail::{Server, Smtp};
use grabd_engine::outgoing::OutgoingClient;
use grabd_engine::placeholder::Placeholder;
use grabd_engine::pricing::Pricing;
use grabd_engine::vault::Vault;
use grabd_engine::webhooks::{Webhooks, can_decrypt_secrets};
use grabd_engine::{Core, Failpoints, Operations, Parts, Settings, cluster, random};
use grabd_images::{ImageOptions, Images, Location, S3Options, Shared, SignedUploads, UploadError, Uploader};
use grabd_memory::MemoryBudget;
use grabd_store::image_places::ImagePlaces;
use grabd_store::{OtherService, ServiceLock, Store};

use crate::config::{Config, ProcessRole, operations};
use crate::database_url::WithoutPassword;
use crate::program_cache::program_cache;
use crate::run_dir::{RunDirRecord, instance, run_dir};

/// Memory limit for cached placeholders.
const PLACEHOLDER_CACHE_BYTES: usize = 32 << 20;

/// Unfinished image files that are older belong to no upload: leases are much shorter.
const STALE_UPLOAD: Duration = Duration::from_secs(24 * 60 * 60);

/// Maximum wait at start for the former service on the same database to exit.
const LOCK_PATIENCE: Duration = Duration::from_secs(10);

/// Opens the database.
///
/// # Errors
/// When it cannot be opened. The text tells the operator what to check.
pub async fn open_store(config: &Config) -> anyhow::Result<Store> {
    let url = config.database_url();
    if url.starts_with("sqlite:") {
        std::fs::create_dir_all(&config.data_dir).with_context(|| {
            format!("the data directory {} cannot be created; set GRABD_DATA_DIR", config.data_dir.display())
        })?;
    }
    Store::open(&url).await.with_context(|| format!("{} cannot be opened", describe_database(config)))
}

/// Makes this process the only service on its database.
///
/// # Errors
/// When another service uses it, with what to do.
pub async fn lock_service(config: &Config, store: &Store) -> anyhow::Result<ServiceLock> {
    let database = describe_database(config);
    let locked = match config.cluster.enabled {
        true => store.lock_cluster(LOCK_PATIENCE).await,
        false => store.lock_service(LOCK_PATIENCE).await,
    };
    let locked = locked.with_context(|| format!("{database} cannot be locked"))?;
    let without = if config.cluster.enabled { " without GRABD_CLUSTER__ENABLED" } else { "" };
    locked.map_err(|OtherService { address, since }| {
        anyhow::anyhow!(
            "another grabd serves {database} already{without}, from {address}, connected since {since}; stop it, or set \
             GRABD_DATABASE__URL to another database. Several can serve one PostgreSQL database if all of them have \
             GRABD_CLUSTER__ENABLED=true: see docs/FLEET.md"
        )
    })
}

/// The database URL without its password.
pub fn describe_database(config: &Config) -> String {
    WithoutPassword::of(&config.database_url()).described()
}

/// The guard for every outgoing connection.
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

/// The memory for images: one budget for the whole process.
pub fn image_memory(config: &Config) -> MemoryBudget {
    MemoryBudget::new(config.capture.image_memory_megabytes << 20)
}

/// The directory of the images, unless `images.url` names another place. Unfinished uploads to a bucket are in it, too.
pub fn images_dir(config: &Config) -> PathBuf {
    config.data_dir.join("images")
}

/// Where new images are stored.
pub fn images_location(config: &Config) -> Location {
    config.images.location().unwrap_or_else(|| Location::Directory(images_dir(config)))
}

/// The operator's certificate authorities for the object store, as PEM.
fn images_roots(config: &Config) -> anyhow::Result<Vec<u8>> {
    let file = &config.images.ca_file;
    match file.as_os_str().is_empty() {
        true => Ok(Vec::new()),
        false => std::fs::read(file).with_context(|| format!("images.ca_file {}", file.display())),
    }
}

/// What uploads images to the object store without its credentials.
///
/// # Errors
/// When the operator's certificates cannot be used.
pub fn uploader(config: &Config) -> anyhow::Result<Uploader> {
    Uploader::new(&images_roots(config)?).with_context(|| format!("images.ca_file {}", config.images.ca_file.display()))
}

/// How the image storage is opened.
///
/// # Errors
/// When the operator's certificates cannot be read.
pub fn image_options(config: &Config) -> anyhow::Result<ImageOptions> {
    let images = &config.images;
    let extra_roots = images_roots(config)?;
    let secret = images.secret_access_key.expose();
    let s3 = S3Options {
        endpoint: images.endpoint.clone(),
        region: images.region.clone(),
        keys: (!secret.is_empty()).then(|| (images.access_key_id.clone(), secret.to_owned())),
        path_style: images.path_style,
        extra_roots,
        environment: aws_environment(),
    };
    let (location, fallback) = (images_location(config), config.images.fallback());
    let shared = config.cluster.enabled.then(|| Shared {
        stale_before: Clock::system().now() - STALE_UPLOAD,
        prefix: format!("{}-", random::secret_text()),
    });
    Ok(ImageOptions { scratch: images_dir(config), location, fallback, s3, shared })
}

/// The variables by which programs usually get their credentials for AWS.
fn aws_environment() -> Vec<(String, String)> {
    const NAMES: [&str; 12] = [
        "AWS_ACCESS_KEY_ID",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_DEFAULT_REGION",
        "AWS_ENDPOINT_URL_STS",
        "AWS_REGION",
        "AWS_ROLE_ARN",
        "AWS_ROLE_SESSION_NAME",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
    ];
    let read = |name: &str| Some((name.to_owned(), std::env::var_os(name)?.into_string().ok()?));
    NAMES.into_iter().filter_map(read).filter(|(_, value)| !value.is_empty()).collect()
}

/// The name under which the directory in the data directory is recorded, wherever that is.
const DEFAULT_PLACE: &str = "data_dir";

/// The name under which a place of images is recorded.
pub fn place_name(config: &Config, location: &Location) -> String {
    let absolute = |path: &Path| std::path::absolute(path).ok();
    match location {
        Location::Directory(path) if absolute(path) == absolute(&images_dir(config)) => DEFAULT_PLACE.to_owned(),
        location @ (Location::Directory(_) | Location::Bucket { .. }) => location.to_string(),
    }
}

/// The configured places of the images, as they are recorded.
pub fn image_places(config: &Config) -> ImagePlaces {
    let name = |location: Location| place_name(config, &location);
    let others = config.images.fallback().map(name).into_iter().collect();
    ImagePlaces { first: Some(name(images_location(config))), others }
}

/// Checks that no place that may have images is missing in the configuration. Returns the places that are recorded.
///
/// # Errors
/// When a place is missing, with what to do.
async fn check_image_places(config: &Config, store: &Store) -> anyhow::Result<ImagePlaces> {
    let (recorded, configured) = (store.images().image_places().await?, image_places(config));
    let mut known: Vec<String> = recorded.first.iter().chain(&recorded.others).cloned().collect();
    let has_images = |dir: PathBuf| std::fs::read_dir(dir).is_ok_and(|mut found| found.next().is_some());
    if known.is_empty() && has_images(images_dir(config).join("i")) {
        // A database of an earlier version.
        known.push(DEFAULT_PLACE.to_owned());
    }
    let is_configured = |place: &String| configured.first.as_ref() == Some(place) || configured.others.contains(place);
    if let Some(missing) = known.iter().find(|place| !is_configured(place)) {
        let url = match missing == DEFAULT_PLACE {
            true => Location::Directory(std::path::absolute(images_dir(config))?).to_string(),
            false => missing.clone(),
        };
        anyhow::bail!(
            "images may also be in {url}: set GRABD_IMAGES__FALLBACK_URL to it, and move them with `grabd admin images \
             move` (docs/IMAGES.md). If it has none, run `grabd admin images forget {missing}`"
        );
    }
    Ok(recorded)
}

/// The name of the object that shows whether a bucket can be used. Two processes do not use the same.
fn probe_name() -> String {
    format!("grabd-probe-{}", std::process::id())
}

/// Opens the image storage for the service, checks the buckets, and records the places.
///
/// # Errors
/// When a place cannot be used or is missing, with what to check.
async fn images(config: &Config, store: &Store) -> anyhow::Result<Images> {
    let recorded = check_image_places(config, store).await?;
    let images = Images::open(&image_options(config)?).context("the image storage cannot be used")?;
    check_images(config, &images).await?;
    log_signed_uploads(config, &images).await?;
    // After the check, so that a place that was never used is not recorded.
    let configured = image_places(config);
    if recorded != configured {
        store.images().record_image_places(configured).await?;
    }
    Ok(images)
}

/// What the object store does with uploads of renderers. `None` if they upload no images.
///
/// # Errors
/// When the operator's certificates cannot be used.
pub async fn signed_uploads(
    config: &Config,
    images: &Images,
) -> anyhow::Result<Option<Result<SignedUploads, UploadError>>> {
    if !config.images.direct_upload || config.cluster.listen.is_none() {
        return Ok(None);
    }
    let name = format!("{}-upload", probe_name());
    Ok(images.probe_signed_uploads(&name, &uploader(config)?).await.transpose())
}

/// Finds out whether renderers can upload images, and logs what operators should know.
async fn log_signed_uploads(config: &Config, images: &Images) -> anyhow::Result<()> {
    match signed_uploads(config, images).await? {
        None | Some(Ok(SignedUploads::Once)) => {}
        Some(Ok(SignedUploads::Repeatable | SignedUploads::Unconditional)) => {
            tracing::info!(
                "the object store does not support If-None-Match: an upload can be repeated while its URL is valid"
            );
        }
        Some(Ok(SignedUploads::Refused)) => {
            tracing::warn!("the object store refuses uploads to signed URLs: all images pass through the cores");
        }
        Some(Err(error)) => tracing::warn!(%error, "it is not known whether renderers can upload images themselves"),
    }
    Ok(())
}

/// Checks that the buckets of the image storage can be written, read and deleted from.
///
/// # Errors
/// When that fails, with what to check.
pub async fn check_images(config: &Config, images: &Images) -> anyhow::Result<()> {
    images.probe(&probe_name()).await.with_context(|| format!("{} cannot be used", describe_images(config)))
}

/// The places of the images, for people.
pub fn describe_images(config: &Config) -> String {
    let place = |location: Location| match location {
        Location::Directory(path) => path.display().to_string(),
        bucket @ Location::Bucket { .. } => match config.images.endpoint.as_str() {
            "" => bucket.to_string(),
            endpoint => format!("{bucket} at {endpoint}"),
        },
    };
    let first = place(images_location(config));
    match config.images.fallback() {
        Some(fallback) => format!("{first}, and {}", place(fallback)),
        None => first,
    }
}

/// The file with the key that encrypts the secrets of webhooks, links, second factors and open grabs.
pub fn key_file(config: &Config) -> PathBuf {
    match config.secrets.key_file.as_os_str().is_empty() {
        true => config.data_dir.join("secrets.key"),
        false => config.secrets.key_file.clone(),
    }
}

/// The directory of the filter lists.
pub fn filter_lists_dir(config: &Config) -> PathBuf {
    match config.browser.filter_lists.as_os_str().is_empty() {
        true => config.data_dir.join("lists"),
        false => config.browser.filter_lists.clone(),
    }
}

/// Reads the filter lists, and logs what is used. Without them, captures that need them are rejected.
pub fn filter_lists(config: &Config) -> FilterLists {
    let (lists, reports) = FilterLists::read(&filter_lists_dir(config));
    for ListReport { path, content, outcome } in reports {
        let (path, content) = (path.display(), content.as_str());
        match outcome {
            None => tracing::debug!(%path, content, "there is no filter list"),
            Some(Ok(rules)) => tracing::info!(%path, content, rules, "a filter list is used"),
            Some(Err(error)) => {
                tracing::error!(%path, content, %error, "a filter list cannot be used, so its content is not blocked");
            }
        }
    }
    lists
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

/// The core, with its workers started. `address` is where this process listens, for operators.
///
/// # Errors
/// When one of its components cannot be built.
pub async fn core(
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
    let images = images(config, &store).await?;
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
                ..operations(&config.abuse, &config.audit)
            },
        },
        cluster: cluster(config, address),
        failpoints: failpoints()?,
    };
    Core::start(parts).await.context("the core cannot start")
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

/// The browser settings, without filter lists.
pub fn browser_options(config: &Config, memory: MemoryBudget, launcher: Option<&Path>) -> grabd_browser::Options {
    let browser = &config.browser;
    let slots = config.slots();
    grabd_browser::Options {
        executable: executable(config),
        program_cache: program_cache(config),
        slots,
        frames: browser.frame,
        spare_contexts: match browser.frame {
            FrameMode::OnDemand => 2,
            FrameMode::Timer => slots + 2,
        },
        run_dir: run_dir(config),
        former_run_dirs: Vec::new(),
        instance: instance(config),
        user: browser_user(config),
        network_jail: browser.network_jail,
        launcher: launcher.map(Path::to_owned),
        settle_budget: config.settle(),
        full_page_max_height: config.capture.full_page_max_height_px,
        image_max_bytes: config.capture.image_max_megabytes << 20,
        memory,
        recycle_after: browser.recycle_grabs,
        recycle_age: Duration::from_secs(browser.recycle_seconds),
        recycle_rss_bytes: browser.recycle_megabytes << 20,
        memory_limit_bytes: browser.memory_limit_megabytes << 20,
        process_limit: browser.process_limit,
        user_agent_token: browser.user_agent.trim().to_owned(),
        respect_opt_out: config.abuse.respect_opt_out,
        lists: Arc::default(),
    }
}

/// The configured browser program, or the first one found. `None` leaves the error message to the browser crate.
fn executable(config: &Config) -> Option<PathBuf> {
    let named = &config.browser.executable;
    if !named.as_os_str().is_empty() {
        return Some(named.clone());
    }
    let search_path = std::env::var_os("PATH").unwrap_or_default();
    find_executable(None, &search_path.to_string_lossy())
}

/// The user that browsers run as. Ignored unless the service runs as root.
pub fn browser_user(config: &Config) -> Option<BrowserUser> {
    (!config.browser.user.is_empty()).then(|| BrowserUser::Named(config.browser.user.clone()))
}

/// Starts the browser, and runs the self-test.
///
/// # Errors
/// When the browser does not start, or when the self-test fails.
pub async fn browser(
    config: &Config,
    guard: Guard,
    memory: MemoryBudget,
    lists: FilterLists,
    launcher: Option<&Path>,
) -> anyhow::Result<Chromium> {
    let policy = guard.policy().clone();
    let mut options = browser_options(config, memory, launcher);
    let (record, earlier) = RunDirRecord::begin(&config.data_dir, &options.run_dir)?;
    options.former_run_dirs = earlier;
    options.lists = Arc::new(lists);
    let chromium =
        Chromium::start(options, guard).await.context("the browser cannot start; `grabd doctor` says more")?;
    if let Err(error) = record.commit() {
        tracing::warn!(
            error = format!("{error:#}"),
            "the record of run directories was not updated; the next start checks cleared directories again"
        );
    }
    match chromium.self_test(&policy).await {
        Ok(report) => {
            tracing::info!("{report}");
            Ok(chromium)
        }
        Err(error) => {
            chromium.shutdown().await;
            Err(error).context("no page is rendered on this machine")
        }
    }
}
