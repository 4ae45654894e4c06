//! The pricing packet: a document maintained by the operator, in the format of the contract (section 2.5).
//!
//! All members that the contract requires are required here; additional members are kept in `extra`.
//! [`Packet::validate`] checks the constants of the contract. [`Packet::filtered`] selects the requested part.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

use crate::faults::{Fault, Field};

mod filter;
mod json;
mod validate;

pub use json::Json;
pub use validate::Problem;

/// Members that the contract does not name.
pub type Extra = BTreeMap<String, Json>;

/// The three competitors that a caller can select, in the order of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "neutral names")]
pub enum ProviderId {
    A,
    B,
    C,
}

impl ProviderId {
    /// All competitors, in the order of the contract.
    pub const ALL: [Self; 3] = [Self::A, Self::B, Self::C];

    /// The name in the contract, which is also the `name` of the competitor's entry.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::A => "provider_a",
            Self::B => "provider_b",
            Self::C => "provider_c",
        }
    }

    /// Parses the name in the contract.
    ///
    /// # Errors
    /// [`Fault::BadRequest`] for the field `provider`.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let known = Self::ALL.into_iter().find(|id| id.as_str() == text);
        known.ok_or_else(|| unknown_name("provider", text, "one of \"provider_a\", \"provider_b\", \"provider_c\""))
    }
}

/// Level of detail of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Detail {
    /// Prices and provider entries, without sources and details.
    Summary,
    /// The full comparison.
    Full,
}

impl Detail {
    /// All levels, in the order of the contract.
    pub const ALL: [Self; 2] = [Self::Summary, Self::Full];

    /// The name in the contract.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Summary => "summary",
            Self::Full => "full",
        }
    }

    /// Parses the name in the contract.
    ///
    /// # Errors
    /// [`Fault::BadRequest`] for the field `detail`.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let known = Self::ALL.into_iter().find(|detail| detail.as_str() == text);
        known.ok_or_else(|| unknown_name("detail", text, "one of \"summary\", \"full\""))
    }
}

fn unknown_name(name: &'static str, seen: &str, allowed: &str) -> Fault {
    Fault::BadRequest(Field::new(name, &format!("\"{seen}\""), allowed))
}

/// The whole document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "documented in the contract")]
pub struct Packet {
    pub pricing: Prices,
    pub comparison: Comparison,
    pub links: BTreeMap<String, String>,
    #[serde(flatten)]
    pub extra: Extra,
}

/// Prices of the service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "documented in the contract")]
pub struct Prices {
    pub per_grab_usd: f64,
    pub currency: String,
    pub billing_model: String,
    pub free_tier: bool,
    pub test_mode: String,
    pub annual: Annual,
    pub prepaid_packages: Vec<Package>,
    #[serde(flatten)]
    pub extra: Extra,
}

/// The annual subscription.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "documented in the contract")]
pub struct Annual {
    pub price_usd: f64,
    pub credits_per_year: u64,
    pub reset_policy: String,
    #[serde(flatten)]
    pub extra: Extra,
}

/// A prepaid package of credits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "documented in the contract")]
pub struct Package {
    pub name: String,
    pub credits: u64,
    pub price_usd: f64,
    pub reset_policy: String,
    #[serde(flatten)]
    pub extra: Extra,
}

/// Comparison of the service with competitors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "documented in the contract")]
pub struct Comparison {
    pub schema_version: String,
    pub last_verified: String,
    pub features: Vec<String>,
    pub providers: Vec<Provider>,
    pub decision_pages: Vec<DecisionPage>,
    pub agent_surfaces: Vec<AgentSurfaces>,
    pub notes: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Detail>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail_hint: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sources: Option<Vec<Source>>,
    #[serde(flatten)]
    pub extra: Extra,
}

/// One provider of the comparison: a competitor or the service itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "documented in the contract")]
pub struct Provider {
    /// A competitor's [`ProviderId`] name, or the name of the service.
    pub name: String,
    pub plan: String,
    pub per_grab: String,
    pub billing: String,
    pub billing_unit: String,
    pub quota_note: String,
    pub included: String,
    pub unused_credits: String,
    pub agent_install: String,
    pub source_url: String,
    pub verified_on: String,
    pub evidence_status: String,
    pub features_supported: Vec<String>,
    pub pricing_evidence: Evidence,
    pub capture_evidence: Evidence,
    pub agent_evidence: Evidence,
    #[serde(deserialize_with = "present_or_null")]
    pub quota_evidence: Option<Evidence>,
    pub is_grabbit: bool,
    #[serde(flatten)]
    pub extra: Extra,
}

/// The source of a claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "documented in the contract")]
pub struct Evidence {
    pub source_url: String,
    pub locator: String,
    pub note: String,
    pub status: String,
    #[serde(flatten)]
    pub extra: Extra,
}

/// A page that helps to choose between the service and one competitor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "documented in the contract")]
pub struct DecisionPage {
    pub competitor: String,
    pub url: String,
    pub verdict: String,
    pub pricing_tiers: Vec<PricingTier>,
    pub capture_capabilities: Vec<String>,
    pub best_fit: Vec<String>,
    #[serde(flatten)]
    pub extra: Extra,
}

/// One of a competitor's plans.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "documented in the contract")]
pub struct PricingTier {
    pub name: String,
    #[serde(flatten)]
    pub extra: Extra,
}

/// The ways for agents to use one provider.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "documented in the contract")]
pub struct AgentSurfaces {
    pub provider: String,
    pub comparison_url: String,
    pub surfaces: Vec<Surface>,
    #[serde(flatten)]
    pub extra: Extra,
}

/// One way for agents to use a provider, and whether the service offers it too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "documented in the contract")]
pub struct Surface {
    pub name: String,
    pub availability: String,
    pub grabbit_availability: String,
    pub source_url: String,
    pub verified_on: String,
    #[serde(flatten)]
    pub extra: Extra,
}

/// A source of the comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "documented in the contract")]
pub struct Source {
    pub label: String,
    pub url: String,
    pub locator: String,
    /// The group of claims it supports: a provider's name, optionally followed by a colon and a topic, or another word.
    pub claim_group: String,
    pub verified_on: String,
    pub note: String,
    pub evidence_status: String,
    #[serde(flatten)]
    pub extra: Extra,
}

/// Requires the member but accepts null. By default, serde treats a missing member of an `Option` like null.
fn present_or_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Evidence>, D::Error> {
    Option::deserialize(deserializer)
}

#[cfg(test)]
mod tests;
