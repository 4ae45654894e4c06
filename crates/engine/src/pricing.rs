//! The pricing packet as it is served: read and judged once, with every answer prepared.

use std::collections::HashMap;

use grabd_domain::Fault;
use grabd_domain::pricing::{Detail, Packet, Problem, ProviderId};
use serde_json::Value;

use crate::billing::Package;

/// What a caller is shown until the operator brings a packet of their own.
const EMBEDDED: &str = include_str!("../data/pricing.json");

/// Why a packet cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not JSON, or not in the contract's shape.
    #[error("the pricing packet cannot be read at line {line}, column {column}")]
    Unreadable {
        /// Line of the document, counted from 1.
        line: usize,
        /// Column of that line, counted from 1.
        column: usize,
        /// What was expected there.
        source: serde_json::Error,
    },
    /// It can be read, and says something that may not be published.
    #[error("the pricing packet may not be published: {}", sentences(.0))]
    Refused(Vec<Problem>),
}

/// The answers to every question about pricing.
#[derive(Debug)]
pub struct Pricing {
    packet: Packet,
    answers: HashMap<(Option<ProviderId>, Detail), Value>,
    packages: Vec<Package>,
}

impl Pricing {
    /// The packet that comes with the program. It makes no claim about anybody but the service.
    pub fn embedded() -> Self {
        Self::from_json(EMBEDDED).expect("the embedded packet is one that may be published")
    }

    /// The operator's own packet.
    ///
    /// # Errors
    /// The place where the text stops being a packet, or everything in it that may not be published.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        let packet: Packet = serde_json::from_str(text).map_err(|source| Error::Unreadable {
            line: source.line(),
            column: source.column(),
            source,
        })?;
        packet.validate().map_err(Error::Refused)?;
        let providers = std::iter::once(None).chain(ProviderId::ALL.map(Some));
        let questions = providers.flat_map(|provider| Detail::ALL.map(|detail| (provider, detail)));
        let answers = questions.map(|(provider, detail)| ((provider, detail), answer(&packet, provider, detail)));
        let packages = packet.pricing.prepaid_packages.iter().map(Package::from).collect();
        let answers = answers.collect();
        Ok(Self { packet, answers, packages })
    }

    /// The whole packet.
    pub fn packet(&self) -> &Packet {
        &self.packet
    }

    /// What can be bought, in the packet's order.
    pub(crate) fn packages(&self) -> &[Package] {
        &self.packages
    }

    /// The packet, or the part of it that was asked for. Without a word about detail it is told in full.
    ///
    /// # Errors
    /// [`Fault::BadRequest`] about `provider` or `detail` when the word is not one the contract lists.
    pub fn get(&self, provider: Option<&str>, detail: Option<&str>) -> Result<Value, Fault> {
        let provider = provider.map(ProviderId::parse).transpose()?;
        let detail = detail.map_or(Ok(Detail::Full), Detail::parse)?;
        Ok(self.answers.get(&(provider, detail)).expect("every question was answered at start").clone())
    }
}

fn answer(packet: &Packet, provider: Option<ProviderId>, detail: Detail) -> Value {
    serde_json::to_value(packet.filtered(provider, detail)).expect("a packet holds only what JSON can say")
}

fn sentences(problems: &[Problem]) -> String {
    problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_packet_may_be_published() {
        Pricing::embedded();
    }

    #[test]
    fn the_embedded_packet_claims_nothing_about_others() {
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
    fn packages_cost_whole_cents() {
        let pricing = Pricing::embedded();
        let told: Vec<_> = pricing.packages().iter().map(|p| (p.name.as_str(), p.credits, p.price_cents)).collect();
        assert_eq!(told, [("25k", 25_000, 5_000), ("50k", 50_000, 10_000), ("125k", 125_000, 25_000)]);
    }

    #[test]
    fn every_question_of_the_contract_has_its_answer() {
        let pricing = Pricing::embedded();
        let rows: [(Option<&str>, Option<&str>, usize, &str); 6] = [
            (None, None, 4, "full"),
            (None, Some("full"), 4, "full"),
            (None, Some("summary"), 4, "summary"),
            (Some("provider_a"), None, 2, "full"),
            (Some("provider_b"), Some("summary"), 2, "summary"),
            (Some("provider_c"), Some("full"), 2, "full"),
        ];
        for (provider, detail, providers, told) in rows {
            let packet = pricing.get(provider, detail).unwrap();
            let names: Vec<_> =
                packet["comparison"]["providers"].as_array().unwrap().iter().map(|p| p["name"].as_str()).collect();
            assert_eq!(names.len(), providers, "{provider:?}");
            assert!(names.contains(&Some("grabd")) && provider.is_none_or(|p| names.contains(&Some(p))), "{names:?}");
            assert_eq!(packet["comparison"]["detail"], told);
            assert_eq!(packet["comparison"]["sources"].is_null(), told == "summary");
            assert_eq!(packet["pricing"]["per_grab_usd"], 0.002);
        }
    }

    #[test]
    fn unknown_words_are_the_callers_mistake() {
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
    fn a_packet_that_cannot_be_read_says_where() {
        let text = EMBEDDED.replacen("\"currency\": \"USD\"", "\"currency\": 7", 1);
        let line = text.lines().position(|line| line.contains("\"currency\"")).unwrap() + 1;
        match Pricing::from_json(&text).unwrap_err() {
            Error::Unreadable { line: told, column, source } => {
                assert_eq!((told, column > 1), (line, true));
                assert!(source.to_string().contains("expected a string"), "{source}");
            }
            Error::Refused(problems) => panic!("it could be read: {problems:?}"),
        }
    }

    #[test]
    fn a_packet_that_may_not_be_published_says_everything_that_is_wrong() {
        let text = EMBEDDED.replacen("0.002", "0.003", 1).replacen("\"USD\"", "\"EUR\"", 1);
        let told = Pricing::from_json(&text).unwrap_err().to_string();
        assert!(told.contains("`pricing.per_grab_usd` must be 0.002; it is 0.003"), "{told}");
        assert!(told.contains("`pricing.currency` must be \"USD\"; it is \"EUR\""), "{told}");
    }

    #[test]
    fn members_beyond_the_contract_are_served() {
        let text = EMBEDDED.replacen("\"currency\"", "\"tax\": {\"rate\": [1, 2.5, null]}, \"currency\"", 1);
        let packet = Pricing::from_json(&text).unwrap().get(None, Some("summary")).unwrap();
        assert_eq!(packet["pricing"]["tax"], serde_json::json!({"rate": [1, 2.5, null]}));
    }
}
