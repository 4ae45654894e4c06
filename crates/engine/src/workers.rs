//! Starts the core and its background loops. Each loop ends when the core stops.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::accounts::Accounts;
use crate::billing::{BalancePosition, Billing};
use crate::bus::{self, Bus, BusSettings};
use crate::cluster::{Cluster, membership};
use crate::core::{Core, Parts};
use crate::domains::DomainPolicy;
use crate::grabs::Grabs;
use crate::limits::TeamLimits;
use crate::mail::{self, MailMessage, Smtp};
use crate::metrics::Metrics;
use crate::oauth::OAuth;
use crate::queue::{Queue, cleanup, hints, lease_loop, sweep};
use crate::storage;
use crate::webhooks::sender;

impl Core {
    /// Recovers jobs that an earlier process left leased, then starts the background loops.
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
            cluster,
            failpoints,
        } = parts;
        let domains = DomainPolicy::new(settings.operations.domains.clone());
        domains.refresh(&store).await?;
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
            webhooks: Arc::new(webhooks),
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

    async fn start_workers(
        &self,
        mailing: Option<(Smtp, mpsc::Receiver<MailMessage>)>,
    ) -> Result<(), grabd_store::Error> {
        storage::measure(self).await;
        if self.has_queue() {
            sweep::recover_leases(self).await?;
            self.spawn(lease_loop::run(self.clone()));
            self.spawn(cleanup::run(self.clone()));
            self.spawn(sender::run(self.clone()));
        }
        if self.cluster.is_some() {
            self.spawn(membership::run(self.clone()));
            self.spawn(bus::run(self.bus.clone(), self.store.clone(), self.stop.clone()));
            self.spawn(hints::run(self.clone()));
        }
        self.spawn(sweep::run(self.clone()));
        self.spawn(storage::run(self.clone()));
        if let Some((smtp, queue)) = mailing {
            self.spawn(mail::run(self.clone(), smtp, queue));
        }
        Ok(())
    }
}
