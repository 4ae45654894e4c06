//! Filters the packet by competitor and level of detail.

use super::{AgentSurfaces, Comparison, DecisionPage, Detail, Packet, ProviderId, Source};

/// The `detail_hint` of a summary.
const SUMMARY_HINT: &str = "Sources, agent surfaces and the particulars of decision pages are left out; \
                            ask with detail=full for everything.";

impl Packet {
    /// Returns the requested part. A provider limits the comparison to that competitor and the service itself. Prices
    /// and links are always complete.
    #[must_use]
    pub fn filtered(&self, provider: Option<ProviderId>, detail: Detail) -> Self {
        let mut packet = self.clone();
        if let Some(provider) = provider {
            keep_only(provider, &mut packet.comparison);
        }
        packet.comparison.detail = Some(detail);
        match detail {
            Detail::Full => packet.comparison.detail_hint = None,
            Detail::Summary => summarize(&mut packet.comparison),
        }
        packet
    }
}

fn keep_only(provider: ProviderId, comparison: &mut Comparison) {
    let is_other = |name: &str| ProviderId::ALL.into_iter().any(|id| id != provider && id.as_str() == name);
    let Comparison { providers, decision_pages, agent_surfaces, sources, .. } = comparison;
    providers.retain(|entry| entry.is_grabbit || !is_other(&entry.name));
    decision_pages.retain(|page| !is_other(&page.competitor));
    agent_surfaces.retain(|entry| !is_other(&entry.provider));
    if let Some(sources) = sources {
        sources.retain(|source| !is_other(source.subject()));
    }
}

/// Removes details. Members that the contract requires are emptied, others are removed.
fn summarize(comparison: &mut Comparison) {
    comparison.detail_hint = Some(SUMMARY_HINT.to_owned());
    comparison.sources = None;
    for page in &mut comparison.decision_pages {
        let DecisionPage { competitor: _, url: _, verdict: _, pricing_tiers, capture_capabilities, best_fit, extra } =
            page;
        pricing_tiers.clear();
        capture_capabilities.clear();
        best_fit.clear();
        extra.clear();
    }
    for entry in &mut comparison.agent_surfaces {
        let AgentSurfaces { provider: _, comparison_url: _, surfaces, extra } = entry;
        surfaces.clear();
        extra.clear();
    }
}

impl Source {
    /// The part of the claim group before the colon: a provider's name or another word.
    fn subject(&self) -> &str {
        self.claim_group.split_once(':').map_or(self.claim_group.as_str(), |(subject, _)| subject)
    }
}
