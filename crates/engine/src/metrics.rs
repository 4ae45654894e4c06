//! What an operator's monitoring reads of the core. Labels are few and fixed: never a team, never an address.

use grabd_domain::grabs::{Class, Grab, State};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::core::Core;

/// Counters that grow as things happen, and gauges that are read when somebody asks.
pub(crate) struct Metrics {
    grabs: Family<Outcome, Counter>,
    grab_seconds: Family<Mode, Histogram>,
    given_back: Counter,
    rate_limited: Counter,
    webhook_attempts: Family<Attempt, Counter>,
    payments: Family<Attempt, Counter>,
    waiting: Family<Mode, Gauge>,
    watched: Gauge,
    renderers: Gauge,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    environment: &'static str,
    mode: &'static str,
    /// `done`, or the code of the failure.
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Mode {
    mode: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Attempt {
    result: &'static str,
}

/// Upper bounds in seconds: a placeholder, a plain page, a heavy one, the limit of a synchronous grab, a long queue.
const SECONDS: [f64; 11] = [0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 25.0, 60.0, 300.0];

impl Default for Metrics {
    fn default() -> Self {
        Self {
            grabs: Family::default(),
            grab_seconds: Family::new_with_constructor(|| Histogram::new(SECONDS)),
            given_back: Counter::default(),
            rate_limited: Counter::default(),
            webhook_attempts: Family::default(),
            payments: Family::default(),
            waiting: Family::default(),
            watched: Gauge::default(),
            renderers: Gauge::default(),
        }
    }
}

impl Metrics {
    /// Counts the end of a grab. How long it took counts for done grabs only, since a refusal would look quick.
    pub(crate) fn ended(&self, grab: &Grab) {
        let environment = grab.environment.as_str();
        let mode = mode(grab.class);
        let result = match &grab.state {
            State::Done { finished_at, .. } => {
                let took = finished_at.since(grab.created_at).as_secs_f64();
                self.grab_seconds.get_or_create(&Mode { mode }).observe(took);
                "done"
            }
            State::Failed { failure, .. } => failure.reason.code().as_str(),
            State::Pending | State::Processing => return,
        };
        self.grabs.get_or_create(&Outcome { environment, mode, result }).inc();
    }

    pub(crate) fn given_back(&self) {
        self.given_back.inc();
    }

    pub(crate) fn rate_limited(&self) {
        self.rate_limited.inc();
    }

    /// Renders that were given back, and requests that a team's rate limit refused, since the start.
    pub(crate) fn since_start(&self) -> (u64, u64) {
        (self.given_back.get(), self.rate_limited.get())
    }

    pub(crate) fn webhook_attempted(&self, delivered: bool) {
        let result = if delivered { "delivered" } else { "failed" };
        self.webhook_attempts.get_or_create(&Attempt { result }).inc();
    }

    /// Counts an event that Stripe, or somebody in its name, has sent.
    pub(crate) fn payment_told(&self, result: &'static str) {
        self.payments.get_or_create(&Attempt { result }).inc();
    }
}

impl Core {
    /// Puts what is counted here, and in the guard, into a registry.
    pub fn register_metrics(&self, registry: &mut Registry) {
        let Metrics {
            grabs,
            grab_seconds,
            given_back,
            rate_limited,
            webhook_attempts,
            payments,
            waiting,
            watched,
            renderers,
        } = &self.metrics;
        registry.register("grabs", "Grabs that ended, by environment, mode and result", grabs.clone());
        registry.register("grab_seconds", "From create to picture, of done grabs", grab_seconds.clone());
        registry.register("renders_given_back", "Attempts that a renderer could not finish", given_back.clone());
        registry.register("rate_limited", "Requests refused by a team's rate limit", rate_limited.clone());
        registry.register("webhook_attempts", "Attempts at webhooks, by result", webhook_attempts.clone());
        registry.register("payment_events", "Events about payments, by what came of them", payments.clone());
        registry.register("grabs_waiting", "Grabs that wait for a slot", waiting.clone());
        registry.register("grabs_watched", "Grabs that somebody waits for", watched.clone());
        registry.register("renderers", "Renderers that are attached", renderers.clone());
        self.guard.register_metrics(registry);
    }

    /// Brings the gauges up to date, for somebody who is about to read them.
    ///
    /// # Errors
    /// When the database cannot be asked.
    pub async fn refresh_metrics(&self) -> Result<(), grabd_store::Error> {
        let metrics = &self.metrics;
        let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        metrics.watched.set(count(self.watchers.watched().len()));
        metrics.renderers.set(count(self.dispatcher.sessions()));
        for class in [Class::Sync, Class::Async] {
            let waiting = self.store.count_waiting(class).await?;
            let waiting = i64::try_from(waiting).unwrap_or(i64::MAX);
            metrics.waiting.get_or_create(&Mode { mode: mode(class) }).set(waiting);
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
