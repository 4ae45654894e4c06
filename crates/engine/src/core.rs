//! State shared by all use-cases. Built once, passed by reference, cheap to clone.

use std::collections::HashSet;
use std::fmt::Display;
use std::future::Future;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use grabd_domain::capture::{BlockedContent, FileKind};
use grabd_domain::credentials::Principal;
use grabd_domain::domains::{Domain, DomainRule};
use grabd_domain::grabs::{FileKey, ImageKey};
use grabd_domain::ids::{TeamId, UserId};
use grabd_domain::pricing::Packet;
use grabd_domain::{Fault, Timestamp};
use grabd_egress::Guard;
use grabd_memory::MemoryBudget;
use grabd_store::{Actor, Images, Store, StoredFile};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::accounts::Passwords;
use crate::admission::{self, Admission};
use crate::billing::stripe::Stripe;
use crate::clock::Clock;
use crate::domains::DomainPolicy;
use crate::failpoints::Failpoints;
use crate::grabs::Thumbnails;
use crate::links::LinksInFlight;
use crate::mail::{self, Mailer, Quotas, Smtp};
use crate::metrics::Metrics;
use crate::oauth::{self, Documents};
use crate::origin;
use crate::outgoing::OutgoingClient;
use crate::placeholder::{self, Placeholder};
use crate::pricing::Pricing;
use crate::queue::{Dispatcher, Watchers, lease_loop, sweep};
use crate::rpc::limits::RateLimits;
use crate::storage::{self, Retention, Storage};
use crate::webhooks::{Webhooks, sender};

/// Settings of the operator.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Origin under which images are reachable, without a trailing slash.
    pub public_url: String,
    /// Allowed requests per minute for each (team, environment).
    pub requests_per_minute: u32,
    /// Maximum number of open asynchronous grabs for teams without a limit of their own.
    pub async_queue: u32,
    /// Maximum size of an image file in bytes. A grab with a larger one fails.
    pub image_max_bytes: u64,
    /// URL for buying credits, reported by the usage endpoint. `{team}` is replaced by the id of the calling team.
    pub top_up: String,
    /// Whether people may create their own accounts.
    pub sign_up: bool,
    /// Settings of the OAuth authorization server.
    pub oauth: oauth::Settings,
    /// Limits against abuse of the render slots.
    pub abuse: admission::Settings,
    /// How long things are kept.
    pub retention: Retention,
    /// Settings against abuse, and of the audit trail.
    pub operations: Operations,
}

/// Settings against abuse, and of the audit trail.
#[derive(Clone, Debug)]
pub struct Operations {
    /// The configured rules for the domains of captured pages.
    pub domains: Vec<(Domain, DomainRule)>,
    /// How long entries of the audit trail are kept.
    pub audit_retention: Duration,
    /// The content for which the renderer has filter lists. Other content cannot be blocked.
    pub listed_contents: Vec<BlockedContent>,
}

impl Default for Operations {
    fn default() -> Self {
        Self {
            domains: Vec::new(),
            audit_retention: Duration::from_secs(400 * 24 * 60 * 60),
            listed_contents: Vec::new(),
        }
    }
}

/// The components that a [`Core`] is built from.
pub struct Parts {
    /// The database.
    pub store: Store,
    /// The stored image files.
    pub images: Images,
    /// The memory for images, shared with the rest of the process.
    pub memory: MemoryBudget,
    /// The address guard.
    pub guard: Guard,
    /// HTTP client for the service's own requests.
    pub outgoing: OutgoingClient,
    /// SMTP transport. `None` when no mail is sent.
    pub mail: Option<Smtp>,
    /// The clock.
    pub clock: Clock,
    /// The pricing packet.
    pub pricing: Pricing,
    /// The placeholder renderer for test keys.
    pub placeholder: Placeholder,
    /// Shared state of the webhook use-cases and the sender.
    pub webhooks: Webhooks,
    /// Stripe client. `None` when credits are not sold.
    pub stripe: Option<Stripe>,
    /// Settings of the operator.
    pub settings: Settings,
    /// Failpoints armed by a test.
    pub failpoints: Failpoints,
}

/// Password resets processed at the same time.
const MAX_CONCURRENT_RESETS: usize = 64;

/// Handle to the shared state. Use-cases borrow it; services and workers hold a clone.
#[derive(Clone)]
pub struct Core(Arc<Shared>);

/// The state behind a [`Core`].
pub struct Shared {
    pub(crate) store: Store,
    pub(crate) images: Images,
    pub(crate) memory: MemoryBudget,
    pub(crate) guard: Guard,
    pub(crate) outgoing: OutgoingClient,
    pub(crate) clock: Clock,
    pub(crate) started_at: Timestamp,
    pub(crate) pricing: Pricing,
    pub(crate) placeholder: Placeholder,
    pub(crate) webhooks: Webhooks,
    pub(crate) stripe: Option<Stripe>,
    pub(crate) settings: Settings,
    #[cfg_attr(not(debug_assertions), expect(dead_code, reason = "failpoints exist only in debug builds"))]
    pub(crate) failpoints: Failpoints,
    pub(crate) dispatcher: Dispatcher,
    pub(crate) admission: Admission,
    pub(crate) watchers: Watchers,
    pub(crate) metrics: Metrics,
    pub(crate) limits: RateLimits,
    pub(crate) links: LinksInFlight,
    pub(crate) storage: Storage,
    pub(crate) thumbnails: Thumbnails,
    pub(crate) passwords: Passwords,
    pub(crate) mailer: Option<Mailer>,
    pub(crate) quotas: Quotas,
    pub(crate) resets: Arc<Semaphore>,
    pub(crate) documents: Documents,
    pub(crate) domains: DomainPolicy,
    pub(crate) tasks: TaskTracker,
    pub(crate) stop: CancellationToken,
    /// Cancelled when draining starts, to end streams that would otherwise delay the shutdown.
    pub(crate) draining: CancellationToken,
    /// Principals that called since the last sweep. Last-use times are written in one batch, outside of requests.
    callers: Mutex<HashSet<Principal>>,
}

impl std::ops::Deref for Core {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl ImageError {
    /// Whether trying again in a few seconds may help, because other images take the memory.
    pub const fn is_busy(&self) -> bool {
        matches!(self, Self::Placeholder(crate::placeholder::Error::Busy))
    }
}

impl Core {
    /// Recovers jobs that an earlier process left leased, then starts the workers.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn start(parts: Parts) -> Result<Self, grabd_store::Error> {
        let Parts {
            store,
            images,
            memory,
            guard,
            outgoing,
            mail,
            clock,
            pricing,
            placeholder,
            webhooks,
            stripe,
            settings,
            failpoints,
        } = parts;
        let admission = Admission::new(settings.abuse);
        let domains = DomainPolicy::new(settings.operations.domains.clone());
        domains.refresh(&store).await?;
        let limits = RateLimits::new(settings.requests_per_minute);
        let (mailer, mail_queue) = mail::mailer();
        let started_at = clock.now();
        let core = Self(Arc::new(Shared {
            store,
            images,
            memory,
            guard,
            outgoing,
            clock,
            started_at,
            pricing,
            placeholder,
            webhooks,
            stripe,
            settings,
            failpoints,
            dispatcher: Dispatcher::default(),
            admission,
            watchers: Watchers::default(),
            metrics: Metrics::default(),
            limits,
            links: LinksInFlight::default(),
            storage: Storage::default(),
            thumbnails: Thumbnails::default(),
            passwords: Passwords::default(),
            mailer: mail.is_some().then_some(mailer),
            quotas: Quotas::default(),
            resets: Arc::new(Semaphore::new(MAX_CONCURRENT_RESETS)),
            documents: Documents::default(),
            domains,
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
            draining: CancellationToken::new(),
            callers: Mutex::default(),
        }));
        storage::measure(&core).await;
        sweep::recover_leases(&core).await?;
        core.spawn(lease_loop::run(core.clone()));
        core.spawn(sweep::run(core.clone()));
        core.spawn(sender::run(core.clone()));
        core.spawn(storage::run(core.clone()));
        if let Some(smtp) = mail {
            core.spawn(mail::run(core.clone(), smtp, mail_queue));
        }
        Ok(core)
    }

    /// Stops the workers and waits for all tasks of the core. Callers that still wait for a grab get their response
    /// before this returns, so renderers must be stopped first.
    pub async fn stop(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Starts draining: only synchronous grabs are still leased. Streams end; clients resume them elsewhere.
    pub fn drain(&self) {
        self.dispatcher.drain();
        self.draining.cancel();
    }

    /// Whether at least one renderer is attached.
    pub fn has_renderer(&self) -> bool {
        self.dispatcher.session_count() > 0
    }

    /// Settings of the OAuth authorization server.
    pub fn oauth(&self) -> &oauth::Settings {
        &self.settings.oauth
    }

    /// Public origin of the API and the images, without a trailing slash.
    pub fn public_url(&self) -> &str {
        &self.settings.public_url
    }

    /// The pricing packet: our prices and the comparison with other providers.
    pub fn pricing(&self) -> &Packet {
        self.pricing.packet()
    }

    /// URL where a team buys credits: the service's own page, or one that the operator configured.
    pub fn top_up(&self, team: TeamId) -> String {
        self.settings.top_up.replace("{team}", &team.to_string())
    }

    /// The current time of the core's clock.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Whether people may create their own accounts.
    pub fn may_sign_up(&self) -> bool {
        self.settings.sign_up
    }

    /// Whether mail is sent. Otherwise the operator passes links on.
    pub fn sends_mail(&self) -> bool {
        self.mailer.is_some()
    }

    /// Host (and port) of the web app, for display.
    pub(crate) fn host(&self) -> String {
        let issuer = &self.settings.oauth.issuer;
        issuer.split_once("://").map_or(issuer.as_str(), |(_, authority)| authority).to_owned()
    }

    /// Looks up the image with this key. Placeholders are not stored; they are drawn again.
    ///
    /// # Errors
    /// When the store cannot be read or the placeholder cannot be drawn.
    pub async fn image(&self, key: &ImageKey) -> Result<Option<Image>, ImageError> {
        if let Some(path) = self.images.file(key).await {
            return Ok(Some(Image::File(path)));
        }
        match self.store.find_placeholder(key).await? {
            Some(spec) => Ok(Some(Image::Placeholder(self.placeholder.draw(&spec).await?))),
            None => Ok(None),
        }
    }

    /// Looks up the file beside an image with this key. Those of placeholders are not stored; they are made again.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn file(&self, key: &FileKey) -> Result<Option<(FileKind, Image)>, ImageError> {
        let Some(StoredFile { kind, image, placeholder_of }) = self.store.find_file(key).await? else {
            return Ok(None);
        };
        if let Some(spec) = placeholder_of {
            return Ok(Some((kind, Image::Placeholder(placeholder::file(&spec, kind)))));
        }
        Ok(self.images.file_beside(&image, kind).await.map(|path| (kind, Image::File(path))))
    }

    /// The memory for images, shared with the rest of the process.
    pub fn image_memory(&self) -> &MemoryBudget {
        &self.memory
    }

    /// Whether the database responds.
    pub async fn is_ready(&self) -> bool {
        self.store.ping().await.is_ok()
    }

    /// The store for changes by a person, which are recorded in the audit trail.
    pub(crate) fn store_as(&self, person: UserId) -> Store {
        let (name, address) = (format!("user:{person}"), origin::address());
        self.store.acting_as(Actor { name, address, now: self.clock.now() })
    }

    /// Records a call, for the last-use time of its key or grant.
    pub(crate) fn record_use(&self, principal: Principal) {
        self.callers.lock().unwrap_or_else(PoisonError::into_inner).insert(principal);
    }

    /// Writes the last-use times of recorded calls.
    pub(crate) async fn flush_last_used(&self) -> Result<(), grabd_store::Error> {
        let callers = std::mem::take(&mut *self.callers.lock().unwrap_or_else(PoisonError::into_inner));
        let (mut keys, mut grants) = (Vec::new(), Vec::new());
        for caller in callers {
            match caller {
                Principal::Key(key) => keys.push(key),
                Principal::Grant(grant) => grants.push(grant),
                // Sessions update their own last use.
                Principal::Person(_) => {}
            }
        }
        let now = self.clock.now();
        self.store.touch_keys(keys, now).await?;
        self.store.touch_grants(grants, now).await
    }

    pub(crate) fn spawn<F>(&self, work: F) -> tokio::task::JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.tasks.spawn(work)
    }
}

/// An image to serve.
#[derive(Debug)]
pub enum Image {
    /// A file. It is never modified, only deleted.
    File(PathBuf),
    /// A placeholder, drawn on request.
    Placeholder(Bytes),
}

/// Why an image could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The database could not be read.
    #[error(transparent)]
    Store(#[from] grabd_store::Error),
    /// The placeholder could not be drawn.
    #[error(transparent)]
    Placeholder(#[from] crate::placeholder::Error),
}

/// The fault of a placeholder that could not be drawn.
pub(crate) fn not_drawn(step: &'static str) -> impl FnOnce(crate::placeholder::Error) -> Fault {
    move |error| match ImageError::from(error) {
        busy if busy.is_busy() => IMAGES_BUSY,
        error => inside(step)(error),
    }
}

/// The fault of a request that waited for the memory for images in vain.
pub(crate) const IMAGES_BUSY: Fault = Fault::ImagesBusy { retry_after_s: 5 };

/// Logs an internal error and hides its cause from the caller.
pub(crate) fn inside<E: Display>(step: &'static str) -> impl FnOnce(E) -> Fault {
    move |error| {
        tracing::error!(step, error = %error, "internal error");
        Fault::InternalError
    }
}
