//! What a packet must say beyond its shape: the published constants, and claims that can be followed up.

use std::fmt;

use time::Date;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;
use url::Url;

use super::{AgentSurfaces, Comparison, DecisionPage, Evidence, Packet, Prices, Provider, ProviderId, Source, Surface};

/// One grab's price in USD, as published.
const PER_GRAB_USD: f64 = 0.002;
/// Credits and price in USD of the annual subscription, as published.
const ANNUAL: (u64, f64) = (25_000, 50.0);
/// Credits and price in USD of the prepaid packages, as published.
const PACKAGES: [(u64, f64); 3] = [(25_000, 50.0), (50_000, 100.0), (125_000, 250.0)];

const ISO_DATE: &[BorrowedFormatItem<'_>] = format_description!("[year]-[month]-[day]");

/// Something in a packet that may not be published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where: member names joined by dots, with array positions in brackets.
    pub path: String,
    /// What is there.
    pub seen: String,
    /// What would be accepted, as the end of "must be …".
    pub allowed: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, seen, allowed } = self;
        write!(f, "`{path}` must be {allowed}; it is {seen}")
    }
}

impl Packet {
    /// May this packet be published?
    ///
    /// # Errors
    /// Everything that is wrong with it, in the document's order.
    pub fn validate(&self) -> Result<(), Vec<Problem>> {
        let Self { pricing, comparison, links, extra: _ } = self;
        let mut check = Check::default();
        check.prices(pricing);
        check.comparison(comparison);
        for (name, address) in links {
            check.url(&format!("links.{name}"), address);
        }
        match check.problems.is_empty() {
            true => Ok(()),
            false => Err(check.problems),
        }
    }
}

#[derive(Default)]
struct Check {
    problems: Vec<Problem>,
}

impl Check {
    fn that(&mut self, holds: bool, path: &str, seen: impl fmt::Debug, allowed: impl Into<String>) {
        if !holds {
            let (path, seen) = (path.to_owned(), format!("{seen:?}"));
            self.problems.push(Problem { path, seen, allowed: allowed.into() });
        }
    }

    fn prices(&mut self, prices: &Prices) {
        let Prices { per_grab_usd, currency, free_tier, annual, prepaid_packages, .. } = prices;
        self.that(*per_grab_usd == PER_GRAB_USD, "pricing.per_grab_usd", per_grab_usd, PER_GRAB_USD.to_string());
        self.that(currency == "USD", "pricing.currency", currency, "\"USD\"");
        self.that(!free_tier, "pricing.free_tier", free_tier, "false");
        let (credits, price) = ANNUAL;
        self.that(annual.price_usd == price, "pricing.annual.price_usd", annual.price_usd, price.to_string());
        let seen = annual.credits_per_year;
        self.that(seen == credits, "pricing.annual.credits_per_year", seen, credits.to_string());
        let seen: Vec<_> = prepaid_packages.iter().map(|package| (package.credits, package.price_usd)).collect();
        let allowed = format!("these (credits, price_usd) in this order: {PACKAGES:?}");
        self.that(seen == PACKAGES, "pricing.prepaid_packages", &seen, allowed);
    }

    fn comparison(&mut self, comparison: &Comparison) {
        let Comparison { last_verified, providers, decision_pages, agent_surfaces, sources, .. } = comparison;
        self.date("comparison.last_verified", last_verified);
        self.identities(providers);
        for (at, provider) in providers.iter().enumerate() {
            self.provider(&format!("comparison.providers[{at}]"), provider);
        }
        for (at, page) in decision_pages.iter().enumerate() {
            self.decision_page(&format!("comparison.decision_pages[{at}]"), page);
        }
        let own: Vec<&str> = providers.iter().filter(|p| p.is_grabbit).map(|p| p.name.as_str()).collect();
        for (at, entry) in agent_surfaces.iter().enumerate() {
            self.agent_surfaces(&format!("comparison.agent_surfaces[{at}]"), entry, &own);
        }
        for (at, source) in sources.iter().flatten().enumerate() {
            self.source(&format!("comparison.sources[{at}]"), source);
        }
    }

    /// One entry for each competitor a caller can ask for, and one for the service: no filter finds nothing.
    fn identities(&mut self, providers: &[Provider]) {
        let path = "comparison.providers";
        let own = providers.iter().filter(|provider| provider.is_grabbit).count();
        self.that(own == 1, path, own, "a list in which exactly one entry has is_grabbit true");
        for id in ProviderId::ALL {
            let found = providers.iter().filter(|p| !p.is_grabbit && p.name == id.as_str()).count();
            let allowed = format!("a list in which exactly one competitor is named \"{}\"", id.as_str());
            self.that(found == 1, path, found, allowed);
        }
    }

    fn provider(&mut self, path: &str, provider: &Provider) {
        let Provider { name, source_url, verified_on, is_grabbit, .. } = provider;
        match is_grabbit {
            true => self.that(ProviderId::parse(name).is_err(), &format!("{path}.name"), name, "the service's name"),
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
        for (at, Surface { source_url, verified_on, .. }) in surfaces.iter().enumerate() {
            self.url(&format!("{path}.surfaces[{at}].source_url"), source_url);
            self.date(&format!("{path}.surfaces[{at}].verified_on"), verified_on);
        }
    }

    fn source(&mut self, path: &str, source: &Source) {
        self.url(&format!("{path}.url"), &source.url);
        self.date(&format!("{path}.verified_on"), &source.verified_on);
    }

    fn competitor(&mut self, path: &str, name: &str) {
        let words = ProviderId::ALL.map(ProviderId::as_str);
        self.that(words.contains(&name), path, name, format!("one of {words:?}"));
    }

    fn date(&mut self, path: &str, text: &str) {
        // The length keeps out signs before the year, which the parser would take.
        let holds = text.len() == "YYYY-MM-DD".len() && Date::parse(text, ISO_DATE).is_ok();
        self.that(holds, path, text, "an ISO 8601 date such as 2026-01-31");
    }

    fn url(&mut self, path: &str, text: &str) {
        let holds = Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        self.that(holds, path, text, "an absolute http(s) URL");
    }
}
