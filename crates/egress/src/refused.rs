//! How often the guard said no, by reason.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use crate::Refusal;

/// Counts what was refused. Clones count together.
#[derive(Clone, Debug, Default)]
pub(crate) struct RefusedCount(Family<Label, Counter>);

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
        self.0.get_or_create(&Label { reason }).inc();
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        let help = "Connections and addresses that the egress guard refused";
        registry.register("egress_refused", help, self.0.clone());
    }
}
