//! The components of the service. Each use-case gets all of them, since a capture also needs credits and webhooks.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use grabd_domain::capture::BlockedContent;
use grabd_domain::contact_link::{ContactLink, ServiceLinks};
use grabd_domain::credentials::Caller;
use grabd_domain::domains::{Domain, DomainRule};
use grabd_domain::identity::{AgentUrl, SigningIdentity};
use grabd_domain::ids::{TeamId, UserId};
use grabd_domain::pricing::Packet;
use grabd_domain::target::TargetUrl;
use grabd_domain::team_limits::TeamLimit;
use grabd_domain::{Fault, Timestamp};
use grabd_egress::Guard;
use grabd_images::Images;
use grabd_memory::MemoryBudget;
use grabd_store::{Actor, Store};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::accounts::Accounts;
use crate::billing::stripe::Stripe;
use crate::billing::{BalancePosition, Billing};
use crate::bus::{Bus, BusSettings};
use crate::clock::Clock;
use crate::cluster::{self, Cluster};
use crate::domains::DomainPolicy;
use crate::failpoints::Failpoints;
use crate::grabs::Grabs;
use crate::identity::Identity;
use crate::limits::TeamLimits;
use crate::links::Links;
use crate::mail::{self, Smtp};
use crate::metrics::Metrics;
use crate::monitors::{MonitorLimits, Monitors};
use crate::oauth::{self, OAuth};
use crate::operator::LimitSettings;
use crate::outgoing::OutgoingClient;
use crate::placeholder::Placeholder;
use crate::pricing::Pricing;
use crate::queue::{CleanupProgress, Queue};
use crate::requests::RequestQueue;
use crate::retention::Retention;
use crate::samples::state::Samples;
use crate::sites::{SiteLimits, Sites};
use crate::vault::Vault;
use crate::webhooks::Webhooks;
use crate::{admission, client_address, identity};

/// Settings of the operator.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Origin under which images are reachable, without a trailing slash.
    pub public_url: String,
    /// Allowed requests per minute for each (team, environment), of teams without a limit of their own.
    pub requests_per_minute: u32,
    /// Maximum number of open asynchronous grabs for teams without a limit of their own.
    pub async_queue: u32,
    /// Maximum size of an image file in bytes. A grab with a larger one fails.
    pub image_max_bytes: u64,
    /// Whether renderers of a cluster upload images to the object store themselves.
    pub direct_uploads: bool,
    /// URL for buying credits, reported by the usage endpoint. `{team}` is replaced by the id of the calling team.
    pub top_up: String,
    /// Whether users may create their own accounts.
    pub sign_up: bool,
    /// Credits of users who have verified the address of their own account. 0: none.
    pub trial_credits: u32,
    /// Settings of the OAuth authorization server.
    pub oauth: oauth::Settings,
    /// Limits against abuse of the render slots.
    pub abuse: admission::Settings,
    /// How long things are kept.
    pub retention: Retention,
    /// Settings against abuse, of the audit trail, and for operators.
    pub operations: Operations,
}

/// Settings against abuse, of the audit trail, and for operators.
#[derive(Clone, Debug)]
pub struct Operations {
    /// The configured rules for the domains of captured pages.
    pub domains: Vec<(Domain, DomainRule)>,
    /// How long entries of the audit trail are kept.
    pub audit_retention: Duration,
    /// The content for which the renderer has filter lists. Other content cannot be blocked.
    pub listed_contents: Vec<BlockedContent>,
    /// Whether operators need a second factor for the operator pages.
    pub second_factor_for_operators: bool,
    /// Whom the owner of a captured site can write to.
    pub abuse_contact: Option<ContactLink>,
    /// What the operator says about the service.
    pub links: ServiceLinks,
    /// Live pages that visitors without an account may capture.
    pub sample_sites: Vec<TargetUrl>,
    /// Limits of monitors.
    pub monitors: MonitorLimits,
    /// Where the public keys are published. `None`: requests to sites are not signed.
    pub identity: Option<AgentUrl>,
    /// The authority that adds time stamps to evidence. `None`: evidence has none.
    pub evidence_timestamp_url: Option<TargetUrl>,
    /// Whether teams can have proxies and use them.
    pub has_proxies: bool,
    /// Limits of site jobs.
    pub sites: SiteLimits,
}

impl Settings {
    /// The limits of teams without an override.
    pub fn limits(&self) -> LimitSettings {
        let Self { requests_per_minute, async_queue, abuse, retention, .. } = self;
        LimitSettings {
            requests_per_minute: *requests_per_minute,
            async_queue: *async_queue,
            abuse: *abuse,
            retention: *retention,
        }
    }
}

impl Default for Operations {
    fn default() -> Self {
        Self {
            domains: Vec::new(),
            audit_retention: Duration::from_secs(400 * 24 * 60 * 60),
            listed_contents: Vec::new(),
            second_factor_for_operators: false,
            abuse_contact: None,
            links: ServiceLinks::default(),
            sample_sites: Vec::new(),
            monitors: MonitorLimits::default(),
            identity: None,
            evidence_timestamp_url: None,
            has_proxies: true,
            sites: SiteLimits::default(),
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
    /// Encrypts stored secrets.
    pub vault: Vault,
    /// Shared state of the webhook use-cases and the sender.
    pub webhooks: Webhooks,
    /// Stripe client. `None` when credits are not sold.
    pub stripe: Option<Stripe>,
    /// Settings of the operator.
    pub settings: Settings,
    /// How this process belongs to a cluster. `None`: it is the only one on the database.
    pub cluster: Option<cluster::Settings>,
    /// Failpoints armed by a test.
    pub failpoints: Failpoints,
}

/// The components of the service, and what all of them need. Use-cases borrow it; services and workers hold a clone,
/// which is cheap.
#[derive(Clone)]
pub struct Core {
    pub(crate) store: Store,
    pub(crate) guard: Guard,
    pub(crate) outgoing: OutgoingClient,
    pub(crate) clock: Clock,
    pub(crate) started_at: Timestamp,
    pub(crate) settings: Arc<Settings>,
    pub(crate) limits: Arc<TeamLimits>,
    pub(crate) metrics: Arc<Metrics>,
    #[cfg_attr(not(debug_assertions), expect(dead_code, reason = "failpoints exist only in debug builds"))]
    pub(crate) failpoints: Arc<Failpoints>,
    pub(crate) grabs: Arc<Grabs>,
    pub(crate) links: Arc<Links>,
    pub(crate) queue: Arc<Queue>,
    pub(crate) samples: Arc<Samples>,
    pub(crate) cluster: Option<Arc<Cluster>>,
    pub(crate) bus: Bus,
    pub(crate) cleanup: Arc<CleanupProgress>,
    pub(crate) accounts: Arc<Accounts>,
    pub(crate) oauth: Arc<OAuth>,
    pub(crate) billing: Arc<Billing>,
    /// Encrypts stored secrets.
    pub(crate) vault: Vault,
    pub(crate) webhooks: Arc<Webhooks>,
    pub(crate) monitors: Arc<Monitors>,
    pub(crate) identity: Arc<Identity>,
    pub(crate) sites: Arc<Sites>,
    pub(crate) requests: Arc<RequestQueue>,
    pub(crate) tasks: TaskTracker,
    pub(crate) stop: CancellationToken,
    /// Cancelled when draining starts, to end streams that would otherwise delay the shutdown.
    pub(crate) draining: CancellationToken,
}

impl Core {
    /// Builds the service. Recovers jobs that an earlier process left leased, then starts the background loops.
    ///
    /// # Errors
    /// When the store cannot be read, or the key that signs requests to sites cannot be decrypted.
    pub async fn start(parts: Parts) -> Result<Self, identity::Error> {
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
            vault,
            webhooks,
            stripe,
            settings,
            cluster,
            failpoints,
        } = parts;
        let domains = DomainPolicy::new(settings.operations.domains.clone());
        domains.refresh(&store).await?;
        let identity = Identity::new(settings.operations.identity.clone());
        identity.start(&store, &vault, clock.now()).await?;
        let limits = Arc::new(TeamLimits::default());
        limits.refresh(&store).await?;
        let (mailer, mail_queue) = mail::mailer();
        let mailing = mail.map(|smtp| (smtp, mail_queue));
        let metrics: Arc<Metrics> = Arc::default();
        let bus = cluster.as_ref().map_or(BusSettings::InProcess, |cluster| cluster.bus.clone());
        let bus = Bus::new(bus, Arc::clone(&metrics));
        let cluster = match cluster {
            Some(settings) => Some(Arc::new(Cluster::join(&store, settings, clock.now()).await?)),
            None => None,
        };
        let core = Self {
            bus,
            started_at: clock.now(),
            grabs: Arc::new(Grabs::new(images, memory, placeholder, domains)),
            queue: Arc::new(Queue::new(settings.abuse, Arc::clone(&limits))),
            links: Arc::default(),
            samples: Arc::default(),
            accounts: Arc::new(Accounts::new(
                mailing.is_some().then_some(mailer),
                settings.requests_per_minute,
                cluster.is_some(),
            )),
            cluster,
            oauth: Arc::new(OAuth::new(settings.oauth.clone())),
            billing: Arc::new(Billing { pricing, stripe, balance_position: BalancePosition::default() }),
            vault,
            webhooks: Arc::new(webhooks),
            monitors: Arc::default(),
            identity: Arc::new(identity),
            sites: Arc::default(),
            requests: Arc::default(),
            store,
            guard,
            outgoing,
            clock,
            settings: Arc::new(settings),
            cleanup: Arc::default(),
            limits,
            metrics,
            failpoints: Arc::new(failpoints),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
            draining: CancellationToken::new(),
        };
        core.start_workers(mailing).await?;
        Ok(core)
    }

    /// Stops the workers and waits for all tasks of the core. Callers that still wait for a grab get their response
    /// before this returns, so renderers must be stopped first.
    pub async fn stop(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        if let Some(cluster) = &self.cluster {
            cluster.leave(&self.store).await;
        }
    }

    /// Completes when the core stops.
    pub async fn stopped(&self) {
        self.stop.cancelled().await;
    }

    /// Starts draining: only synchronous grabs are still leased. Streams end; clients resume them elsewhere.
    pub fn drain(&self) {
        self.queue.dispatcher.drain();
        self.draining.cancel();
    }

    /// Whether at least one renderer is attached.
    pub fn has_renderer(&self) -> bool {
        self.queue.dispatcher.session_count() > 0
    }

    /// Settings of the OAuth authorization server.
    pub fn oauth(&self) -> &oauth::Settings {
        &self.oauth.settings
    }

    /// Public origin of the API and the images, without a trailing slash.
    pub fn public_url(&self) -> &str {
        &self.settings.public_url
    }

    /// The pricing packet: our prices and the comparison with other providers.
    pub fn pricing(&self) -> &Packet {
        self.billing.pricing.packet()
    }

    /// The pricing packet, filtered by provider and level of detail.
    ///
    /// # Errors
    /// [`Fault::BadRequest`] when `provider` or `detail` is not a value of the contract.
    pub fn filtered_pricing(&self, provider: Option<&str>, detail: Option<&str>) -> Result<Value, Fault> {
        self.billing.pricing.get(provider, detail)
    }

    /// URL where a team buys credits: the service's own page, or one that the operator configured.
    pub fn top_up(&self, team: TeamId) -> String {
        self.settings.top_up.replace("{team}", &team.to_string())
    }

    /// The content that captures can be kept free of, because the operator has a filter list for it.
    pub fn listed_contents(&self) -> &[BlockedContent] {
        &self.settings.operations.listed_contents
    }

    /// Whether teams can have proxies and use them.
    pub fn has_proxies(&self) -> bool {
        self.settings.operations.has_proxies
    }

    /// Maximum size of an image file in bytes. A grab with a larger one fails.
    pub fn image_max_bytes(&self) -> u64 {
        self.settings.image_max_bytes
    }

    /// Maximum number of open asynchronous grabs of a team.
    pub(crate) fn async_queue(&self, team: TeamId) -> u32 {
        self.limits.of(team, TeamLimit::AsyncQueue).unwrap_or(self.settings.async_queue)
    }

    /// The key with which requests to sites are signed now. `None` if they are not. The same as before until it changes.
    pub fn signing_identity(&self) -> Option<Arc<SigningIdentity>> {
        self.identity.current(self.clock.now())
    }

    /// The directory of the keys with which requests to sites are signed. `None` if they are not.
    pub fn key_directory(&self) -> Option<identity::Directory> {
        self.identity.directory(self.clock.now())
    }

    /// The current time of the core's clock.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Whether users may create their own accounts.
    pub fn may_sign_up(&self) -> bool {
        self.settings.sign_up
    }

    /// Credits that a user gets for verifying their address.
    pub fn trial_credits(&self) -> u32 {
        self.settings.trial_credits
    }

    /// Whom the owner of a captured site can write to.
    pub fn abuse_contact(&self) -> Option<&ContactLink> {
        self.settings.operations.abuse_contact.as_ref()
    }

    /// What the operator says about the service.
    pub fn service_links(&self) -> &ServiceLinks {
        &self.settings.operations.links
    }

    /// Whether mail is sent. Otherwise the operator passes links on.
    pub fn sends_mail(&self) -> bool {
        self.accounts.mailer.is_some()
    }

    /// Host (and port) of the web app, for display.
    pub(crate) fn host(&self) -> String {
        let issuer = &self.oauth.settings.issuer;
        issuer.split_once("://").map_or(issuer.as_str(), |(_, authority)| authority).to_owned()
    }

    /// The memory for images, shared with the rest of the process.
    pub fn image_memory(&self) -> &MemoryBudget {
        &self.grabs.memory
    }

    /// Whether the database responds.
    pub async fn is_ready(&self) -> bool {
        self.store.ping().await.is_ok()
    }

    /// The store for changes by a user, which are recorded in the audit trail.
    pub(crate) fn store_as(&self, user: UserId) -> Store {
        let (name, address) = (format!("user:{user}"), client_address::address());
        self.store.acting_as(Actor { name, address, now: self.clock.now() })
    }

    /// The store for changes by a caller. Those of users are recorded in the audit trail.
    pub(crate) fn store_for(&self, caller: Caller) -> Store {
        match caller.principal.user() {
            Some(user) => self.store_as(user),
            None => self.store.clone(),
        }
    }

    /// Spawns a task that [`Core::stop`] waits for.
    pub fn spawn<F>(&self, work: F) -> tokio::task::JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        // On the heap, since the runtime moves a new task several times.
        self.tasks.spawn(Box::pin(work))
    }
}
