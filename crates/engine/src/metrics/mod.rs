//! Metrics of the core. Labels have few, fixed values: never a team or an address.

mod export;

use std::sync::atomic::AtomicU64;

use grabd_domain::credentials::Environment;
use grabd_domain::faults::ErrorCause;
use grabd_domain::grabs::{Class, FailureReason, Grab, State};
use grabd_domain::monitor::RunOutcome;
use grabd_domain::proxies::ProxyProblem;
use grabd_domain::site::SiteState;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

/// Counters updated by events, and gauges updated by [`Core::refresh_metrics`].
pub(crate) struct Metrics {
    grabs: Family<GrabLabels, Counter>,
    failures: Family<FailureLabels, Counter>,
    grab_seconds: Family<ModeLabel, Histogram>,
    released: Counter,
    rate_limited: Counter,
    not_admitted: Family<ReasonLabel, Counter>,
    webhook_attempts: Family<ResultLabel, Counter>,
    monitor_runs: Family<OutcomeLabel, Counter>,
    monitors_overdue: Gauge,
    evidence_timestamps: Family<ResultLabel, Counter>,
    proxy_failures: Family<ReasonLabel, Counter>,
    sites: Family<SiteLabel, Counter>,
    sites_overdue: Gauge,
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
    hints: Family<ResultLabel, Counter>,
    images_stored: Family<WayLabel, Counter>,
    not_recorded: Family<ReasonLabel, Counter>,
    queue_wait: Family<ModeLabel, Gauge<f64, AtomicU64>>,
    queue_slots: Family<SlotLabel, Gauge>,
}

/// How an image came from its renderer to where it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ImageWay {
    /// Through this process.
    Core,
    /// The renderer uploaded it to the object store.
    Direct,
}

/// The results of hints between processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HintResult {
    Sent,
    Received,
    /// They could not be sent.
    Lost,
    Malformed,
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
struct SlotLabel {
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WayLabel {
    way: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabel {
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SiteLabel {
    state: &'static str,
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
            monitor_runs: Family::default(),
            monitors_overdue: Gauge::default(),
            evidence_timestamps: Family::default(),
            proxy_failures: Family::default(),
            sites: Family::default(),
            sites_overdue: Gauge::default(),
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
            hints: Family::default(),
            images_stored: Family::default(),
            not_recorded: Family::default(),
            queue_wait: Family::default(),
            queue_slots: Family::default(),
        };
        metrics.begin_at_zero();
        metrics
    }
}

/// What a request for a time stamp may become.
const TIMESTAMP_RESULTS: [&str; 2] = ["received", "failed"];
/// What an event of a payment may become, of which alerts exist.
const PAYMENT_RESULTS: [&str; 3] = ["failed", "unexpected", "unknown_team"];
/// Steps of the sweep of which alerts exist.
const WATCHED_STEPS: [&str; 3] = ["clock", "cluster_clock", "erasure"];
/// Why live creates are not admitted.
const REFUSALS: [&str; 4] = ["disk", "expected_wait", "failed_renders", "storage"];
/// Why answered requests are not recorded.
const NOT_RECORDED: [&str; 2] = ["queue_full", "database"];

impl Metrics {
    /// Makes the samples before the first event: an increase from an absent sample is none, so that alerts and graphs
    /// would miss the first event.
    fn begin_at_zero(&self) {
        let failures = [
            FailureReason::RenderBlocked,
            FailureReason::RenderFailed,
            FailureReason::SsrfDetected,
            FailureReason::InternalError,
        ];
        for environment in [Environment::Live, Environment::Test].map(Environment::as_str) {
            let results = || failures.iter().map(|reason| reason.code().as_str()).chain(["done"]);
            for (mode, result) in [Class::Sync, Class::Async]
                .map(mode)
                .into_iter()
                .flat_map(|mode| results().map(move |result| (mode, result)))
            {
                drop(self.grabs.get_or_create(&GrabLabels { environment, mode, result }));
            }
            for cause in ErrorCause::ALL.map(ErrorCause::as_str) {
                drop(self.failures.get_or_create(&FailureLabels { environment, cause }));
            }
        }
        for mode in [Class::Sync, Class::Async].map(mode) {
            drop(self.grab_seconds.get_or_create(&ModeLabel { mode }));
        }
        for reason in NOT_RECORDED {
            drop(self.not_recorded.get_or_create(&ReasonLabel { reason }));
        }
        for reason in REFUSALS {
            drop(self.not_admitted.get_or_create(&ReasonLabel { reason }));
        }
        for result in ["delivered", "failed"] {
            drop(self.webhook_attempts.get_or_create(&ResultLabel { result }));
        }
        for outcome in RunOutcome::ALL.into_iter().filter(|outcome| *outcome != RunOutcome::Running) {
            drop(self.monitor_runs.get_or_create(&OutcomeLabel { outcome: outcome.as_str() }));
        }
        for result in TIMESTAMP_RESULTS {
            drop(self.evidence_timestamps.get_or_create(&ResultLabel { result }));
        }
        for problem in ProxyProblem::ALL {
            drop(self.proxy_failures.get_or_create(&ReasonLabel { reason: problem.as_str() }));
        }
        for state in SiteState::ALL.into_iter().filter(|state| !state.is_open()) {
            drop(self.sites.get_or_create(&SiteLabel { state: state.as_str() }));
        }
        for result in PAYMENT_RESULTS {
            drop(self.payments.get_or_create(&ResultLabel { result }));
        }
        for result in ["sent", "received", "lost", "malformed"] {
            drop(self.hints.get_or_create(&ResultLabel { result }));
        }
        for way in ["core", "direct"] {
            drop(self.images_stored.get_or_create(&WayLabel { way }));
        }
        for step in WATCHED_STEPS {
            drop(self.sweep_errors.get_or_create(&StepLabel { step }));
        }
        drop(self.set_aside.get_or_create(&WorkLabel { work: "retention" }));
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

    /// Counts answered requests that their team cannot look up.
    pub(crate) fn requests_not_recorded(&self, reason: &'static str, count: u64) {
        self.not_recorded.get_or_create(&ReasonLabel { reason }).inc_by(count);
    }

    /// Number of released jobs and of rate-limited requests since the start.
    pub(crate) fn since_start(&self) -> (u64, u64) {
        (self.released.get(), self.rate_limited.get())
    }

    pub(crate) fn webhook_attempted(&self, delivered: bool) {
        let result = if delivered { "delivered" } else { "failed" };
        self.webhook_attempts.get_or_create(&ResultLabel { result }).inc();
    }

    /// Counts a run of a monitor that has ended.
    pub(crate) fn run_ended(&self, outcome: RunOutcome) {
        self.monitor_runs.get_or_create(&OutcomeLabel { outcome: outcome.as_str() }).inc();
    }

    /// Counts a request for a time stamp of evidence.
    pub(crate) fn evidence_timestamped(&self, is_received: bool) {
        let [received, failed] = TIMESTAMP_RESULTS;
        self.evidence_timestamps
            .get_or_create(&ResultLabel { result: if is_received { received } else { failed } })
            .inc();
    }

    /// Counts a grab that failed because of the proxy of its team.
    pub(crate) fn proxy_failed(&self, problem: ProxyProblem) {
        self.proxy_failures.get_or_create(&ReasonLabel { reason: problem.as_str() }).inc();
    }

    /// Counts a site job that has ended.
    pub(crate) fn site_ended(&self, state: SiteState) {
        self.sites.get_or_create(&SiteLabel { state: state.as_str() }).inc();
    }

    /// Counts a message that was given up.
    pub(crate) fn mail_failed(&self) {
        self.mail_failed.inc();
    }

    /// Counts an error of a step of the sweep.
    pub(crate) fn sweep_failed(&self, step: &'static str) {
        self.sweep_errors.get_or_create(&StepLabel { step }).inc();
    }

    /// Counts a payload of hints.
    pub(crate) fn hint(&self, result: HintResult) {
        let result = match result {
            HintResult::Sent => "sent",
            HintResult::Received => "received",
            HintResult::Lost => "lost",
            HintResult::Malformed => "malformed",
        };
        self.hints.get_or_create(&ResultLabel { result }).inc();
    }

    /// Counts the image of a grab that is done.
    pub(crate) fn image_stored(&self, way: ImageWay) {
        let way = match way {
            ImageWay::Core => "core",
            ImageWay::Direct => "direct",
        };
        self.images_stored.get_or_create(&WayLabel { way }).inc();
    }

    /// Counts a received payment event, genuine or forged.
    pub(crate) fn payment_event(&self, result: &'static str) {
        self.payments.get_or_create(&ResultLabel { result }).inc();
    }
}

const fn mode(class: Class) -> &'static str {
    match class {
        Class::Sync => "sync",
        Class::Async => "async",
    }
}
