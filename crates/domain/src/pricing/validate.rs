//! Validates a packet's content: the published constants, and verifiable sources of claims.

use std::fmt;

use time::Date;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;
use url::Url;

use super::{AgentSurfaces, Comparison, DecisionPage, Evidence, Packet, Prices, Provider, ProviderId, Source, Surface};

/// Published price of one grab in USD.
const PER_GRAB_USD: f64 = 0.002;
/// Published credits and price in USD of the annual subscription.
const ANNUAL: (u64, f64) = (25_000, 50.0);
/// Published credits and prices in USD of the prepaid packages.
const PACKAGES: [(u64, f64); 3] = [(25_000, 50.0), (50_000, 100.0), (125_000, 250.0)];

const ISO_DATE: &[BorrowedFormatItem<'_>] = format_description!("[year]-[month]-[day]");

/// An invalid value in a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Path of the value: member names joined by dots, array indices in brackets.
    pub path: String,
    /// The value.
    pub seen: String,
    /// What is accepted, as the end of "must be …".
    pub allowed: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, seen, allowed } = self;
        write!(f, "`{path}` must be {allowed}; it is {seen}")
    }
}

impl Packet {
    /// Checks whether the packet can be published.
    ///
    /// # Errors
    /// All invalid values, in document order.
    pub fn validate(&self) -> Result<(), Vec<Problem>> {
        let Self { pricing, comparison, links, extra: _ } = self;
        let mut validator = Validator::default();
        validator.prices(pricing);
        validator.comparison(comparison);
        for (name, address) in links {
            validator.url(&format!("links.{name}"), address);
        }
        match validator.problems.is_empty() {
            true => Ok(()),
            false => Err(validator.problems),
        }
    }
}

#[derive(Default)]
struct Validator {
    problems: Vec<Problem>,
}

impl Validator {
    fn require(&mut self, holds: bool, path: &str, seen: impl fmt::Debug, allowed: impl Into<String>) {
        if !holds {
            let (path, seen) = (path.to_owned(), format!("{seen:?}"));
            self.problems.push(Problem { path, seen, allowed: allowed.into() });
        }
    }

    fn prices(&mut self, prices: &Prices) {
        let Prices { per_grab_usd, currency, free_tier, annual, prepaid_packages, .. } = prices;
        self.require(*per_grab_usd == PER_GRAB_USD, "pricing.per_grab_usd", per_grab_usd, PER_GRAB_USD.to_string());
        self.require(currency == "USD", "pricing.currency", currency, "\"USD\"");
        self.require(!free_tier, "pricing.free_tier", free_tier, "false");
        let (credits, price) = ANNUAL;
        self.require(annual.price_usd == price, "pricing.annual.price_usd", annual.price_usd, price.to_string());
        let seen = annual.credits_per_year;
        self.require(seen == credits, "pricing.annual.credits_per_year", seen, credits.to_string());
        let seen: Vec<_> = prepaid_packages.iter().map(|package| (package.credits, package.price_usd)).collect();
        let allowed = format!("these (credits, price_usd) in this order: {PACKAGES:?}");
        self.require(seen == PACKAGES, "pricing.prepaid_packages", &seen, allowed);
    }

    fn comparison(&mut self, comparison: &Comparison) {
        let Comparison { last_verified, providers, decision_pages, agent_surfaces, sources, .. } = comparison;
        self.date("comparison.last_verified", last_verified);
        self.provider_names(providers);
        for (index, provider) in providers.iter().enumerate() {
            self.provider(&format!("comparison.providers[{index}]"), provider);
        }
        for (index, page) in decision_pages.iter().enumerate() {
            self.decision_page(&format!("comparison.decision_pages[{index}]"), page);
        }
        let own: Vec<&str> = providers.iter().filter(|p| p.is_grabbit).map(|p| p.name.as_str()).collect();
        for (index, entry) in agent_surfaces.iter().enumerate() {
            self.agent_surfaces(&format!("comparison.agent_surfaces[{index}]"), entry, &own);
        }
        for (index, source) in sources.iter().flatten().enumerate() {
            self.source(&format!("comparison.sources[{index}]"), source);
        }
    }

    /// Requires exactly one entry for each competitor and one for the service, so that every filter has a result.
    fn provider_names(&mut self, providers: &[Provider]) {
        let path = "comparison.providers";
        let own = providers.iter().filter(|provider| provider.is_grabbit).count();
        self.require(own == 1, path, own, "a list in which exactly one entry has is_grabbit true");
        for id in ProviderId::ALL {
            let found = providers.iter().filter(|p| !p.is_grabbit && p.name == id.as_str()).count();
            let allowed = format!("a list in which exactly one competitor is named \"{}\"", id.as_str());
            self.require(found == 1, path, found, allowed);
        }
    }

    fn provider(&mut self, path: &str, provider: &Provider) {
        let Provider { name, source_url, verified_on, is_grabbit, .. } = provider;
        match is_grabbit {
            true => self.require(ProviderId::parse(name).is_err(), &format!("{path}.name"), name, "the service's name"),
            false => self.competitor(&format!("{path}.name"), name),
        }
        self.url(&format!("{path}.source_url"), source_url);
        self.date(&format!("{path}.verified_on"), verified_on);
        let evidence = [
            ("pricing_evidence", Some(&provider.pricing_evidence)),
            ("capture_evidence", Some(&provider.capture_evidence)),
            ("agent_evidence", Some(&provider.agent_evidence)),
            ("quota_evidence", provider.quota_evidence.as_ref()),
        ];
        for (name, evidence) in evidence {
            if let Some(Evidence { source_url, .. }) = evidence {
                self.url(&format!("{path}.{name}.source_url"), source_url);
            }
        }
    }

    fn decision_page(&mut self, path: &str, page: &DecisionPage) {
        self.competitor(&format!("{path}.competitor"), &page.competitor);
        self.url(&format!("{path}.url"), &page.url);
    }

    fn agent_surfaces(&mut self, path: &str, entry: &AgentSurfaces, own: &[&str]) {
        let AgentSurfaces { provider, comparison_url, surfaces, extra: _ } = entry;
        if !own.contains(&provider.as_str()) {
            self.competitor(&format!("{path}.provider"), provider);
        }
        self.url(&format!("{path}.comparison_url"), comparison_url);
        for (index, Surface { source_url, verified_on, .. }) in surfaces.iter().enumerate() {
            self.url(&format!("{path}.surfaces[{index}].source_url"), source_url);
            self.date(&format!("{path}.surfaces[{index}].verified_on"), verified_on);
        }
    }

    fn source(&mut self, path: &str, source: &Source) {
        self.url(&format!("{path}.url"), &source.url);
        self.date(&format!("{path}.verified_on"), &source.verified_on);
    }

    fn competitor(&mut self, path: &str, name: &str) {
        let words = ProviderId::ALL.map(ProviderId::as_str);
        self.require(words.contains(&name), path, name, format!("one of {words:?}"));
    }

    fn date(&mut self, path: &str, text: &str) {
        // The length check rejects a sign before the year, which the parser accepts.
        let holds = text.len() == "YYYY-MM-DD".len() && Date::parse(text, ISO_DATE).is_ok();
        self.require(holds, path, text, "an ISO 8601 date such as 2026-01-31");
    }

    fn url(&mut self, path: &str, text: &str) {
        let holds = Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        self.require(holds, path, text, "an absolute http(s) URL");
    }
}
