//! The pricing packet: a document the operator keeps, in the contract's shape (its section 2.5).
//!
//! Every member the contract requires is required here; members it does not name survive in `extra`. What the contract
//! publishes as constants is checked by [`Packet::validate`], what a caller may leave out by [`Packet::filtered`].

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

use crate::faults::{Fault, Field};

mod filter;
mod json;
mod validate;

pub use json::Json;
pub use validate::Problem;

/// Members beyond those the contract names.
pub type Extra = BTreeMap<String, Json>;

/// The three competitors a caller can ask for, in the contract's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "neutral names say nothing more")]
pub enum ProviderId {
    A,
    B,
    C,
}

impl ProviderId {
    /// Every competitor, in the contract's order.
    pub const ALL: [Self; 3] = [Self::A, Self::B, Self::C];

    /// The wire word, which is also the `name` of the competitor's entry.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::A => "provider_a",
            Self::B => "provider_b",
            Self::C => "provider_c",
        }
    }

    /// The competitor behind a wire word.
    ///
    /// # Errors
    /// [`Fault::BadRequest`] about the field `provider`.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let known = Self::ALL.into_iter().find(|id| id.as_str() == text);
        known.ok_or_else(|| unknown_word("provider", text, "one of \"provider_a\", \"provider_b\", \"provider_c\""))
    }
}

/// How much of the comparison is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Detail {
    /// What fits a short answer: prices and provider entries, without the evidence behind them.
    Summary,
    /// Everything.
    Full,
}

impl Detail {
    /// Both, in the contract's order.
    pub const ALL: [Self; 2] = [Self::Summary, Self::Full];

    /// The wire word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Summary => "summary",
            Self::Full => "full",
        }
    }

    /// The level behind a wire word.
    ///
    /// # Errors
    /// [`Fault::BadRequest`] about the field `detail`.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let known = Self::ALL.into_iter().find(|detail| detail.as_str() == text);
        known.ok_or_else(|| unknown_word("detail", text, "one of \"summary\", \"full\""))
    }
}

fn unknown_word(name: &'static str, seen: &str, allowed: &str) -> Fault {
    Fault::BadRequest(Field::new(name, &format!("\"{seen}\""), allowed))
}

/// The whole document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the members are the contract's, which says what they mean")]
pub struct Packet {
    pub pricing: Prices,
    pub comparison: Comparison,
    pub links: BTreeMap<String, String>,
    #[serde(flatten)]
    pub extra: Extra,
}

/// What a grab costs here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the members are the contract's, which says what they mean")]
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
#[expect(missing_docs, reason = "the members are the contract's, which says what they mean")]
pub struct Annual {
    pub price_usd: f64,
    pub credits_per_year: u64,
    pub reset_policy: String,
    #[serde(flatten)]
    pub extra: Extra,
}

/// Credits bought once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the members are the contract's, which says what they mean")]
pub struct Package {
    pub name: String,
    pub credits: u64,
    pub price_usd: f64,
    pub reset_policy: String,
    #[serde(flatten)]
    pub extra: Extra,
}

/// How the service compares with others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the members are the contract's, which says what they mean")]
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

/// One provider's row: a competitor's, or the service's own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the members are the contract's, which says what they mean")]
pub struct Provider {
    /// A competitor's [`ProviderId`] word, or the service's own name.
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

/// Where a claim was read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the members are the contract's, which says what they mean")]
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
#[expect(missing_docs, reason = "the members are the contract's, which says what they mean")]
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
#[expect(missing_docs, reason = "the members are the contract's, which says what they mean")]
pub struct PricingTier {
    pub name: String,
    #[serde(flatten)]
    pub extra: Extra,
}

/// The ways in which agents reach one provider.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the members are the contract's, which says what they mean")]
pub struct AgentSurfaces {
    pub provider: String,
    pub comparison_url: String,
    pub surfaces: Vec<Surface>,
    #[serde(flatten)]
    pub extra: Extra,
}

/// One way in which agents reach a provider, and whether the service has it too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the members are the contract's, which says what they mean")]
pub struct Surface {
    pub name: String,
    pub availability: String,
    pub grabbit_availability: String,
    pub source_url: String,
    pub verified_on: String,
    #[serde(flatten)]
    pub extra: Extra,
}

/// A source behind the comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the members are the contract's, which says what they mean")]
pub struct Source {
    pub label: String,
    pub url: String,
    pub locator: String,
    /// Whose claims it carries: a provider's name, alone or followed by a colon and a topic; or any other word.
    pub claim_group: String,
    pub verified_on: String,
    pub note: String,
    pub evidence_status: String,
    #[serde(flatten)]
    pub extra: Extra,
}

/// Null is a value of the contract here, absence is not; serde alone would take one for the other.
fn present_or_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Evidence>, D::Error> {
    Option::deserialize(deserializer)
}

#[cfg(test)]
mod tests;
