//! Metrics of the core. Labels have few, fixed values: never a team or an address.

use std::sync::atomic::Ordering;

use grabd_domain::grabs::{Class, Grab, State};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::core::Core;

/// Counters updated by events, and gauges updated by [`Core::refresh_metrics`].
pub(crate) struct Metrics {
    grabs: Family<GrabLabels, Counter>,
    failures: Family<FailureLabels, Counter>,
    grab_seconds: Family<ModeLabel, Histogram>,
    released: Counter,
    rate_limited: Counter,
    not_admitted: Family<ReasonLabel, Counter>,
    webhook_attempts: Family<ResultLabel, Counter>,
    payments: Family<ResultLabel, Counter>,
    waiting: Family<ModeLabel, Gauge>,
    watched: Gauge,
    renderers: Gauge,
    image_memory: Gauge,
    sweep_errors: Family<StepLabel, Counter>,
    set_aside: Family<WorkLabel, Counter>,
    images_free: Gauge,
    images_floor: Gauge,
    oldest_waiting: Gauge,
    webhooks_waiting: Gauge,
    mail_failed: Counter,
    backup_at: Gauge,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct GrabLabels {
    environment: &'static str,
    mode: &'static str,
    /// `done`, or the error code of the failure.
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FailureLabels {
    environment: &'static str,
    /// Whose fault it is.
    cause: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabel {
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ModeLabel {
    mode: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StepLabel {
    step: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WorkLabel {
    work: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabel {
    result: &'static str,
}

/// Upper bounds in seconds: from placeholders, simple and heavy pages, and the synchronous limit, to a long queue.
const SECONDS: [f64; 11] = [0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 25.0, 60.0, 300.0];

impl Default for Metrics {
    fn default() -> Self {
        let metrics = Self {
            grabs: Family::default(),
            failures: Family::default(),
            grab_seconds: Family::new_with_constructor(|| Histogram::new(SECONDS)),
            released: Counter::default(),
            rate_limited: Counter::default(),
            not_admitted: Family::default(),
            webhook_attempts: Family::default(),
            payments: Family::default(),
            waiting: Family::default(),
            watched: Gauge::default(),
            renderers: Gauge::default(),
            image_memory: Gauge::default(),
            sweep_errors: Family::default(),
            set_aside: Family::default(),
            images_free: Gauge::default(),
            images_floor: Gauge::default(),
            oldest_waiting: Gauge::default(),
            webhooks_waiting: Gauge::default(),
            mail_failed: Counter::default(),
            backup_at: Gauge::default(),
        };
        // Alerts on an increase need a first sample of zero.
        for result in ["failed", "unexpected", "unknown_team"] {
            drop(metrics.payments.get_or_create(&ResultLabel { result }));
        }
        for step in ["clock", "erasure"] {
            drop(metrics.sweep_errors.get_or_create(&StepLabel { step }));
        }
        drop(metrics.set_aside.get_or_create(&WorkLabel { work: "retention" }));
        metrics
    }
}

impl Metrics {
    /// Counts a grab that ended. Durations are recorded for done grabs only, since early failures would look fast.
    pub(crate) fn grab_ended(&self, grab: &Grab) {
        let environment = grab.environment.as_str();
        let mode = mode(grab.class);
        let result = match &grab.state {
            State::Done { finished_at, .. } => {
                let took = finished_at.since(grab.created_at).as_secs_f64();
                self.grab_seconds.get_or_create(&ModeLabel { mode }).observe(took);
                "done"
            }
            State::Failed { failure, .. } => {
                let cause = failure.cause.as_str();
                self.failures.get_or_create(&FailureLabels { environment, cause }).inc();
                failure.reason.code().as_str()
            }
            State::Pending | State::Processing => return,
        };
        self.grabs.get_or_create(&GrabLabels { environment, mode, result }).inc();
    }

    pub(crate) fn job_released(&self) {
        self.released.inc();
    }

    /// Counts a live create that was refused by admission.
    pub(crate) fn admission_refused(&self, reason: &'static str) {
        self.not_admitted.get_or_create(&ReasonLabel { reason }).inc();
    }

    pub(crate) fn rate_limited(&self) {
        self.rate_limited.inc();
    }

    /// Number of released jobs and of rate-limited requests since the start.
    pub(crate) fn since_start(&self) -> (u64, u64) {
        (self.released.get(), self.rate_limited.get())
    }

    pub(crate) fn webhook_attempted(&self, delivered: bool) {
        let result = if delivered { "delivered" } else { "failed" };
        self.webhook_attempts.get_or_create(&ResultLabel { result }).inc();
    }

    /// Counts a message that was given up.
    pub(crate) fn mail_failed(&self) {
        self.mail_failed.inc();
    }

    /// Counts an error of a step of the sweep.
    pub(crate) fn sweep_failed(&self, step: &'static str) {
        self.sweep_errors.get_or_create(&StepLabel { step }).inc();
    }

    /// Counts a received payment event, genuine or forged.
    pub(crate) fn payment_event(&self, result: &'static str) {
        self.payments.get_or_create(&ResultLabel { result }).inc();
    }
}

impl Core {
    /// Registers the metrics of the core and of the address guard.
    pub fn register_metrics(&self, registry: &mut Registry) {
        let Metrics {
            grabs,
            failures,
            grab_seconds,
            released,
            rate_limited,
            not_admitted,
            webhook_attempts,
            payments,
            waiting,
            watched,
            renderers,
            image_memory,
            sweep_errors,
            set_aside,
            images_free,
            images_floor,
            oldest_waiting,
            webhooks_waiting,
            mail_failed,
            backup_at,
        } = &*self.metrics;
        registry.register("grabs", "Grabs that ended, by environment, mode and result", grabs.clone());
        registry.register("grab_failures", "Grabs that failed, by environment and whose fault it is", failures.clone());
        registry.register("grab_seconds", "From create to picture, of done grabs", grab_seconds.clone());
        registry.register("renders_given_back", "Attempts that a renderer could not finish", released.clone());
        registry.register("rate_limited", "Requests refused by a team's rate limit", rate_limited.clone());
        registry.register("creates_refused", "Live creates that were not admitted, by reason", not_admitted.clone());
        registry.register("webhook_attempts", "Attempts at webhooks, by result", webhook_attempts.clone());
        registry.register("payment_events", "Events about payments, by what came of them", payments.clone());
        registry.register("grabs_waiting", "Grabs that wait for a slot", waiting.clone());
        registry.register("grabs_watched", "Grabs that somebody waits for", watched.clone());
        registry.register("renderers", "Renderers that are attached", renderers.clone());
        let help = "Memory reserved for images that are received, scaled or drawn";
        registry.register_with_unit("image_memory", help, Unit::Bytes, image_memory.clone());
        registry.register("sweep_errors", "Errors of the periodic cleanup, by step", sweep_errors.clone());
        registry.register("rows_set_aside", "Rows that cannot be processed, by kind of work", set_aside.clone());
        let help = "Free space on the disk of the images, measured every 10 seconds";
        registry.register_with_unit("images_free", help, Unit::Bytes, images_free.clone());
        let help = "Free space below which nothing is created; 0 if there is no limit";
        registry.register_with_unit("images_floor", help, Unit::Bytes, images_floor.clone());
        let help = "How long the oldest grab that waits for a slot has waited; 0 if none waits";
        registry.register_with_unit("grabs_oldest_waiting", help, Unit::Seconds, oldest_waiting.clone());
        registry.register("webhooks_waiting", "Deliveries before their first attempt", webhooks_waiting.clone());
        registry.register("mail_failed", "Messages that were given up", mail_failed.clone());
        let help = "When the last backup by `grabd admin backup` was complete; 0 if there is none";
        registry.register_with_unit("last_backup_timestamp", help, Unit::Seconds, backup_at.clone());
        self.guard.register_metrics(registry);
    }

    /// Updates the gauges. Called before metrics are read.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn refresh_metrics(&self) -> Result<(), grabd_store::Error> {
        let metrics = &self.metrics;
        let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        metrics.watched.set(count(self.queue.watchers.watched().len()));
        metrics.renderers.set(count(self.queue.dispatcher.session_count()));
        metrics.image_memory.set(i64::try_from(self.grabs.memory.reserved_bytes()).unwrap_or(i64::MAX));
        metrics.images_free.set(i64::try_from(self.grabs.storage.free_bytes()).unwrap_or(i64::MAX));
        metrics.images_floor.set(i64::try_from(self.grabs.storage.floor_bytes()).unwrap_or(i64::MAX));
        let now = self.clock.now();
        let age = self.store.oldest_waiting().await?.map_or(0, |oldest| now.since(oldest).as_secs());
        metrics.oldest_waiting.set(i64::try_from(age).unwrap_or(i64::MAX));
        let backlog = self.store.delivery_backlog().await?;
        metrics.webhooks_waiting.set(i64::try_from(backlog.waiting).unwrap_or(i64::MAX));
        metrics.backup_at.set(self.store.last_backup().await?.map_or(0, |at| at.as_ms() / 1000));
        for (work, rows) in self.store.rows_set_aside() {
            // The store counts: a concurrent refresh sets the same number.
            metrics.set_aside.get_or_create(&WorkLabel { work }).inner().store(rows, Ordering::Relaxed);
        }
        for class in [Class::Sync, Class::Async] {
            let waiting = self.store.count_waiting(class).await?;
            let waiting = i64::try_from(waiting).unwrap_or(i64::MAX);
            metrics.waiting.get_or_create(&ModeLabel { mode: mode(class) }).set(waiting);
        }
        Ok(())
    }
}

const fn mode(class: Class) -> &'static str {
    match class {
        Class::Sync => "sync",
        Class::Async => "async",
    }
}
