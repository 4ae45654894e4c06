//! How often the guard said no, by reason.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use crate::Refusal;

/// Counts what was refused. Clones count together.
#[derive(Clone, Debug, Default)]
pub(crate) struct RefusedCount {
    counters: Family<Label, Counter>,
    /// The labels that there are: the counters cannot be listed.
    reasons: Arc<Mutex<BTreeSet<&'static str>>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Label {
    reason: &'static str,
}

impl RefusedCount {
    /// Counts a refusal. That a target could not be reached is none.
    pub(crate) fn note(&self, refusal: &Refusal) {
        if refusal.is_refused() {
            self.add(refusal.reason());
        }
    }

    pub(crate) fn add(&self, reason: &'static str) {
        self.counters.get_or_create(&Label { reason }).inc();
        self.reasons.lock().unwrap_or_else(PoisonError::into_inner).insert(reason);
    }

    /// Every reason there was, by name, with how often.
    pub(crate) fn all(&self) -> Vec<(&'static str, u64)> {
        let reasons = self.reasons.lock().unwrap_or_else(PoisonError::into_inner).clone();
        reasons.into_iter().map(|reason| (reason, self.counters.get_or_create(&Label { reason }).get())).collect()
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        let help = "Connections and addresses that the egress guard refused";
        registry.register("egress_refused", help, self.counters.clone());
    }
}
