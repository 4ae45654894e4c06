//! Counts refused connections and addresses by reason.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use crate::EgressError;

/// Refusals by reason. Clones share their counters.
#[derive(Clone, Debug, Default)]
pub(crate) struct RefusalCounters {
    counters: Family<Label, Counter>,
    /// The labels in use. A counter family cannot be iterated.
    reasons: Arc<Mutex<BTreeSet<&'static str>>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Label {
    reason: &'static str,
}

impl RefusalCounters {
    /// Counts the error if the guard refused the target. Unreachable targets are not counted.
    pub(crate) fn record(&self, error: &EgressError) {
        if error.is_refused() {
            self.increment(error.reason());
        }
    }

    pub(crate) fn increment(&self, reason: &'static str) {
        self.counters.get_or_create(&Label { reason }).inc();
        self.reasons.lock().insert(reason);
    }

    /// The count of each reason, ordered by name.
    pub(crate) fn counts(&self) -> Vec<(&'static str, u64)> {
        let reasons = self.reasons.lock().clone();
        reasons.into_iter().map(|reason| (reason, self.counters.get_or_create(&Label { reason }).get())).collect()
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        let help = "Connections and addresses that the egress guard refused";
        registry.register("egress_refused", help, self.counters.clone());
    }
}
