//! The pricing packet: parsed and validated once, with all responses computed in advance.

use std::collections::HashMap;

use grabd_domain::Fault;
use grabd_domain::pricing::{self, Detail, Packet, Problem, ProviderId};
use serde_json::Value;

/// A one-time purchase of credits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    /// Name in the price list; identifies the package in a purchase.
    pub name: String,
    /// Number of credits.
    pub credits: u32,
    /// Price in US cents.
    pub price_cents: u32,
}

impl From<&pricing::Package> for Package {
    /// The price list is validated when it is read, so its numbers are whole and small.
    fn from(listed: &pricing::Package) -> Self {
        let credits = u32::try_from(listed.credits).unwrap_or(0);
        Self { name: listed.name.clone(), credits, price_cents: (listed.price_usd * 100.0).round() as u32 }
    }
}

/// The default packet, used unless the operator provides one.
const EMBEDDED: &str = include_str!("../data/pricing.json");

/// Why a packet cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is not JSON, or does not match the contract.
    #[error("the pricing packet cannot be read at line {line}, column {column}")]
    Unreadable {
        /// Line in the document, counted from 1.
        line: usize,
        /// Column in that line, counted from 1.
        column: usize,
        /// The parse error.
        source: serde_json::Error,
    },
    /// It was parsed, but contains something that may not be published.
    #[error("the pricing packet may not be published: {}", join(.0))]
    Invalid(Vec<Problem>),
}

/// The pricing packet with a prepared response for each provider and level of detail.
#[derive(Debug)]
pub struct Pricing {
    packet: Packet,
    responses: HashMap<(Option<ProviderId>, Detail), Value>,
    packages: Vec<Package>,
}

impl Pricing {
    /// The packet embedded in the program. It makes no claims about other providers.
    pub fn embedded() -> Self {
        Self::from_json(EMBEDDED).expect("the embedded packet is valid")
    }

    /// Parses and validates the operator's packet.
    ///
    /// # Errors
    /// The position of the parse error, or all problems found by validation.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        let packet: Packet = serde_json::from_str(text).map_err(|source| Error::Unreadable {
            line: source.line(),
            column: source.column(),
            source,
        })?;
        packet.validate().map_err(Error::Invalid)?;
        let providers = std::iter::once(None).chain(ProviderId::ALL.map(Some));
        let queries = providers.flat_map(|provider| Detail::ALL.map(|detail| (provider, detail)));
        let responses = queries.map(|(provider, detail)| ((provider, detail), response(&packet, provider, detail)));
        let packages = packet.pricing.prepaid_packages.iter().map(Package::from).collect();
        let responses = responses.collect();
        Ok(Self { packet, responses, packages })
    }

    /// The whole packet.
    pub fn packet(&self) -> &Packet {
        &self.packet
    }

    /// The credit packages for sale, in the packet's order.
    pub(crate) fn packages(&self) -> &[Package] {
        &self.packages
    }

    /// The packet, filtered by provider and level of detail. The detail defaults to full.
    ///
    /// # Errors
    /// [`Fault::BadRequest`] when `provider` or `detail` is not a value of the contract.
    pub fn get(&self, provider: Option<&str>, detail: Option<&str>) -> Result<Value, Fault> {
        let provider = provider.map(ProviderId::parse).transpose()?;
        let detail = detail.map_or(Ok(Detail::Full), Detail::parse)?;
        Ok(self.responses.get(&(provider, detail)).expect("responses exist for all queries").clone())
    }
}

fn response(packet: &Packet, provider: Option<ProviderId>, detail: Detail) -> Value {
    serde_json::to_value(packet.filtered(provider, detail)).expect("a packet serializes to JSON")
}

fn join(problems: &[Problem]) -> String {
    problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn embedded_packet_is_valid() {
        Pricing::embedded();
    }

    #[test]
    fn embedded_packet_makes_no_claims_about_other_providers() {
        let packet = Pricing::embedded().get(None, None).unwrap();
        let providers = packet["comparison"]["providers"].as_array().unwrap();
        for provider in providers.iter().filter(|provider| provider["is_grabbit"] == false) {
            assert_eq!(provider["evidence_status"], "not_verified");
            assert_eq!(provider["features_supported"], serde_json::json!([]));
            assert_eq!(provider["per_grab"], "not verified");
        }
        assert_eq!(providers.len(), 4);
    }

    #[test]
    fn package_prices_are_whole_cents() {
        let pricing = Pricing::embedded();
        let packages: Vec<_> = pricing.packages().iter().map(|p| (p.name.as_str(), p.credits, p.price_cents)).collect();
        assert_eq!(packages, [("25k", 25_000, 5_000), ("50k", 50_000, 10_000), ("125k", 125_000, 25_000)]);
    }

    #[test]
    fn every_provider_and_detail_of_the_contract_has_a_response() {
        let pricing = Pricing::embedded();
        let rows: [(Option<&str>, Option<&str>, usize, &str); 6] = [
            (None, None, 4, "full"),
            (None, Some("full"), 4, "full"),
            (None, Some("summary"), 4, "summary"),
            (Some("provider_a"), None, 2, "full"),
            (Some("provider_b"), Some("summary"), 2, "summary"),
            (Some("provider_c"), Some("full"), 2, "full"),
        ];
        for (provider, detail, providers, expected_detail) in rows {
            let packet = pricing.get(provider, detail).unwrap();
            let names: Vec<_> =
                packet["comparison"]["providers"].as_array().unwrap().iter().map(|p| p["name"].as_str()).collect();
            assert_eq!(names.len(), providers, "{provider:?}");
            assert!(names.contains(&Some("grabd")) && provider.is_none_or(|p| names.contains(&Some(p))), "{names:?}");
            assert_eq!(packet["comparison"]["detail"], expected_detail);
            assert_eq!(packet["comparison"]["sources"].is_null(), expected_detail == "summary");
            assert_eq!(packet["pricing"]["per_grab_usd"], 0.002);
        }
    }

    #[test]
    fn unknown_provider_or_detail_is_a_bad_request() {
        let rows = [
            (Some("provider_d"), None, "provider"),
            (Some("grabd"), None, "provider"),
            (Some(""), None, "provider"),
            (Some("PROVIDER_A"), Some("brief"), "provider"),
            (None, Some("brief"), "detail"),
            (Some("provider_a"), Some(""), "detail"),
        ];
        let pricing = Pricing::embedded();
        for (provider, detail, name) in rows {
            let fault = pricing.get(provider, detail).unwrap_err();
            assert_eq!(fault.code().as_str(), "bad_request");
            assert_eq!(fault.field().unwrap().name, name, "{provider:?} {detail:?}");
        }
    }

    #[test]
    fn unreadable_packet_reports_line_and_column() {
        let text = EMBEDDED.replacen("\"currency\": \"USD\"", "\"currency\": 7", 1);
        let line = text.lines().position(|line| line.contains("\"currency\"")).unwrap() + 1;
        match Pricing::from_json(&text).unwrap_err() {
            Error::Unreadable { line: reported, column, source } => {
                assert_eq!((reported, column > 1), (line, true));
                assert!(source.to_string().contains("expected a string"), "{source}");
            }
            Error::Invalid(problems) => panic!("expected a parse error, got {problems:?}"),
        }
    }

    #[test]
    fn invalid_packet_reports_all_problems() {
        let text = EMBEDDED.replacen("0.002", "0.003", 1).replacen("\"USD\"", "\"EUR\"", 1);
        let message = Pricing::from_json(&text).unwrap_err().to_string();
        assert!(message.contains("`pricing.per_grab_usd` must be 0.002; it is 0.003"), "{message}");
        assert!(message.contains("`pricing.currency` must be \"USD\"; it is \"EUR\""), "{message}");
    }

    #[test]
    fn unknown_members_are_preserved() {
        let text = EMBEDDED.replacen("\"currency\"", "\"tax\": {\"rate\": [1, 2.5, null]}, \"currency\"", 1);
        let packet = Pricing::from_json(&text).unwrap().get(None, Some("summary")).unwrap();
        assert_eq!(packet["pricing"]["tax"], serde_json::json!({"rate": [1, 2.5, null]}));
    }
}
