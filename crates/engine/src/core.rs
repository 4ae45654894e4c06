//! What the use-cases share: built once, passed by reference, cheap to clone.

use std::collections::HashSet;
use std::fmt::Display;
use std::future::Future;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use grabd_domain::credentials::Principal;
use grabd_domain::grabs::ImageKey;
use grabd_domain::ids::TeamId;
use grabd_domain::pricing::Packet;
use grabd_domain::{Fault, Timestamp};
use grabd_egress::Guard;
use grabd_store::{Images, Store};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::accounts::Passwords;
use crate::billing::stripe::Stripe;
use crate::clock::Clock;
use crate::failpoints::Failpoints;
use crate::grabs::Thumbnails;
use crate::mail::{self, Letterbox, Quotas, Smtp};
use crate::metrics::Metrics;
use crate::oauth::{self, Documents};
use crate::outgoing::Outgoing;
use crate::placeholder::Placeholder;
use crate::pricing::Pricing;
use crate::queue::{Dispatcher, Watchers, pump, sweep};
use crate::rpc::limits::Limits;
use crate::webhooks::{Webhooks, sender};

/// What an operator sets.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Origin under which images are reachable, without a trailing slash.
    pub public_url: String,
    /// Requests per minute and (team, environment).
    pub requests_per_minute: u32,
    /// Asynchronous grabs a team may have open, unless the team has a limit of its own.
    pub async_queue: u32,
    /// Where to buy credits, as the usage answer says it. `{team}` in it stands for the id of the team that asks.
    pub top_up: String,
    /// May people make accounts for themselves?
    pub sign_up: bool,
    /// Who issues tokens for what.
    pub oauth: oauth::Settings,
}

/// What a core is made of.
pub struct Parts {
    /// The database.
    pub store: Store,
    /// The pictures.
    pub images: Images,
    /// The address guard.
    pub guard: Guard,
    /// What makes requests to others.
    pub outgoing: Outgoing,
    /// What hands letters over, if anything does.
    pub mail: Option<Smtp>,
    /// The clock.
    pub clock: Clock,
    /// The pricing packet.
    pub pricing: Pricing,
    /// What test keys get.
    pub placeholder: Placeholder,
    /// What sends webhooks.
    pub webhooks: Webhooks,
    /// Where credits are paid for, if they can be.
    pub stripe: Option<Stripe>,
    /// What the operator set.
    pub settings: Settings,
    /// Where a test wants it to fail.
    pub failpoints: Failpoints,
}

/// Forgotten passwords that are looked after at a time.
const RESETS: usize = 64;

/// The core: use-cases run against it, services and workers hold it.
#[derive(Clone)]
pub struct Core(Arc<Shared>);

/// Behind the core's one pointer.
pub struct Shared {
    pub(crate) store: Store,
    pub(crate) images: Images,
    pub(crate) guard: Guard,
    pub(crate) outgoing: Outgoing,
    pub(crate) clock: Clock,
    pub(crate) started_at: Timestamp,
    pub(crate) pricing: Pricing,
    pub(crate) placeholder: Placeholder,
    pub(crate) webhooks: Webhooks,
    pub(crate) stripe: Option<Stripe>,
    pub(crate) settings: Settings,
    #[cfg_attr(not(debug_assertions), expect(dead_code, reason = "there is nothing to arm"))]
    pub(crate) failpoints: Failpoints,
    pub(crate) dispatcher: Dispatcher,
    pub(crate) watchers: Watchers,
    pub(crate) metrics: Metrics,
    pub(crate) limits: Limits,
    pub(crate) thumbnails: Thumbnails,
    pub(crate) passwords: Passwords,
    pub(crate) letterbox: Option<Letterbox>,
    pub(crate) quotas: Quotas,
    pub(crate) resets: Arc<Semaphore>,
    pub(crate) documents: Documents,
    pub(crate) tasks: TaskTracker,
    pub(crate) stop: CancellationToken,
    /// Ends streams that would otherwise keep a draining process waiting.
    pub(crate) draining: CancellationToken,
    /// Who called since the last sweep; the last use is written in one go, never on a request's path.
    callers: Mutex<HashSet<Principal>>,
}

impl std::ops::Deref for Core {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl Core {
    /// Takes over what an earlier life left behind, then starts the workers.
    ///
    /// # Errors
    /// What the store says when it cannot be read.
    pub async fn start(parts: Parts) -> Result<Self, grabd_store::Error> {
        let Parts {
            store,
            images,
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
        let limits = Limits::new(settings.requests_per_minute);
        let (letterbox, letters) = mail::letterbox();
        let started_at = clock.now();
        let core = Self(Arc::new(Shared {
            store,
            images,
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
            watchers: Watchers::default(),
            metrics: Metrics::default(),
            limits,
            thumbnails: Thumbnails::default(),
            passwords: Passwords::default(),
            letterbox: mail.is_some().then_some(letterbox),
            quotas: Quotas::default(),
            resets: Arc::new(Semaphore::new(RESETS)),
            documents: Documents::default(),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
            draining: CancellationToken::new(),
            callers: Mutex::default(),
        }));
        sweep::take_over(&core).await?;
        core.spawn(pump::run(core.clone()));
        core.spawn(sweep::run(core.clone()));
        core.spawn(sender::run(core.clone()));
        if let Some(smtp) = mail {
            core.spawn(mail::run(core.clone(), smtp, letters));
        }
        Ok(core)
    }

    /// Stops the workers and waits until every task of the core has ended. Callers still waiting for a grab are
    /// answered before this returns, so renderers must have finished first.
    pub async fn stop(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Finishes for those who hold the line and takes up nothing else; streams end and are resumed elsewhere.
    pub fn drain(&self) {
        self.dispatcher.drain();
        self.draining.cancel();
    }

    /// Is a renderer attached?
    pub fn has_renderer(&self) -> bool {
        self.dispatcher.sessions() > 0
    }

    /// Who issues tokens for what, for faces that have to say so.
    pub fn oauth(&self) -> &oauth::Settings {
        &self.settings.oauth
    }

    /// The origin under which callers reach the API and the images, without a trailing slash.
    pub fn public_url(&self) -> &str {
        &self.settings.public_url
    }

    /// What a grab costs, and what others take.
    pub fn pricing(&self) -> &Packet {
        self.pricing.packet()
    }

    /// Where a team's people buy credits: our own page, or one that the operator has named.
    pub fn top_up(&self, team: TeamId) -> String {
        self.settings.top_up.replace("{team}", &team.to_string())
    }

    /// The time, by the one clock.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// May people make accounts for themselves?
    pub fn may_sign_up(&self) -> bool {
        self.settings.sign_up
    }

    /// Are letters sent, or does the operator pass links on?
    pub fn sends_mail(&self) -> bool {
        self.letterbox.is_some()
    }

    /// What people call the place where the pages are.
    pub(crate) fn host(&self) -> String {
        let issuer = &self.settings.oauth.issuer;
        issuer.split_once("://").map_or(issuer.as_str(), |(_, authority)| authority).to_owned()
    }

    /// What lies behind an image's address.
    ///
    /// # Errors
    /// What the store or the placeholder says.
    pub async fn image(&self, key: &ImageKey) -> Result<Option<Image>, ImageError> {
        if let Some(path) = self.images.file(key).await {
            return Ok(Some(Image::File(path)));
        }
        match self.store.find_placeholder(key).await? {
            Some(spec) => Ok(Some(Image::Drawn(self.placeholder.draw(&spec).await?))),
            None => Ok(None),
        }
    }

    /// Is the database there?
    pub async fn is_ready(&self) -> bool {
        self.store.ping().await.is_ok()
    }

    /// Remembers that somebody called.
    pub(crate) fn note_use(&self, principal: Principal) {
        self.callers.lock().unwrap_or_else(PoisonError::into_inner).insert(principal);
    }

    pub(crate) async fn flush_uses(&self) -> Result<(), grabd_store::Error> {
        let callers = std::mem::take(&mut *self.callers.lock().unwrap_or_else(PoisonError::into_inner));
        let (mut keys, mut grants) = (Vec::new(), Vec::new());
        for caller in callers {
            match caller {
                Principal::Key(key) => keys.push(key),
                Principal::Grant(grant) => grants.push(grant),
                // A session keeps its own last use.
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

/// An image as it is served.
#[derive(Debug)]
pub enum Image {
    /// A file that is never changed, only removed.
    File(PathBuf),
    /// A placeholder, drawn anew.
    Drawn(Bytes),
}

/// Why an image could not be fetched.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The database.
    #[error(transparent)]
    Store(#[from] grabd_store::Error),
    /// The drawing.
    #[error(transparent)]
    Placeholder(#[from] crate::placeholder::Error),
}

/// Logs a cause from the inside, once, and hides it from the caller.
pub(crate) fn inside<E: Display>(step: &'static str) -> impl FnOnce(E) -> Fault {
    move |error| {
        tracing::error!(step, error = %error, "a request failed inside");
        Fault::InternalError
    }
}
