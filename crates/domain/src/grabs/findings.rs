//! What was found out about a page while it was captured.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The most characters of the name of a consent dialog's vendor.
const CMP_CHARS: usize = 64;

/// What was found out about a page while it was captured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Findings {
    /// Whether the image has one colour. `None` unless there is an image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blank: Option<bool>,
    /// The bot protection service whose challenge the page is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub challenge: Option<Challenge>,
    /// The consent dialog that was found. `None` unless they are blocked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consent: Option<Consent>,
    /// Which requests were not sent. `None` unless something is blocked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked: Option<BlockedRequests>,
}

/// A bot protection service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names of the services")]
pub enum Challenge {
    Akamai,
    Aws,
    Cloudflare,
    Datadome,
    Hcaptcha,
    Imperva,
    Perimeterx,
    Recaptcha,
    Vercel,
    /// None of these.
    Unknown,
}

impl Challenge {
    /// All services.
    pub const ALL: [Self; 10] = [
        Self::Akamai,
        Self::Aws,
        Self::Cloudflare,
        Self::Datadome,
        Self::Hcaptcha,
        Self::Imperva,
        Self::Perimeterx,
        Self::Recaptcha,
        Self::Vercel,
        Self::Unknown,
    ];

    /// The name in the APIs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Akamai => "akamai",
            Self::Aws => "aws",
            Self::Cloudflare => "cloudflare",
            Self::Datadome => "datadome",
            Self::Hcaptcha => "hcaptcha",
            Self::Imperva => "imperva",
            Self::Perimeterx => "perimeterx",
            Self::Recaptcha => "recaptcha",
            Self::Vercel => "vercel",
            Self::Unknown => "unknown",
        }
    }

    /// Parses a name. Names of later versions are [`Self::Unknown`].
    pub fn parse(name: &str) -> Self {
        Self::ALL.into_iter().find(|of| of.as_str() == name).unwrap_or(Self::Unknown)
    }
}

impl fmt::Display for Challenge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Challenge {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Challenge {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::parse(&String::deserialize(deserializer)?))
    }
}

/// A consent dialog that was found, and how it was handled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consent {
    /// The vendor of the dialog, in lower case, or `unknown`.
    pub cmp: String,
    /// How it was handled.
    pub result: ConsentResult,
}

impl Consent {
    /// With a shortened name, of which only letters, digits and `-_. ` are kept.
    pub fn new(cmp: &str, result: ConsentResult) -> Self {
        let is_kept = |c: &char| c.is_ascii_alphanumeric() || "-_. ".contains(*c);
        let cmp: String = cmp.chars().filter(is_kept).take(CMP_CHARS).collect();
        let cmp = cmp.trim().to_ascii_lowercase();
        Self { cmp: if cmp.is_empty() { "unknown".to_owned() } else { cmp }, result }
    }
}

/// How a consent dialog was handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConsentResult {
    /// All consent that can be refused was refused.
    Rejected,
    /// It is not visible, and nothing was chosen.
    Hidden,
    /// It is still visible.
    Failed,
}

impl ConsentResult {
    /// The name in the APIs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rejected => "rejected",
            Self::Hidden => "hidden",
            Self::Failed => "failed",
        }
    }

    /// Parses the name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Rejected, Self::Hidden, Self::Failed].into_iter().find(|of| of.as_str() == name)
    }
}

/// Numbers of requests that were not sent, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BlockedRequests {
    /// Their address is not public.
    pub guard: u32,
    /// They are on the list of ads.
    pub ads: u32,
    /// They are on the list of trackers.
    pub trackers: u32,
    /// The caller blocked their type or their URL.
    pub asked: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_survive_storage_and_unknown_words_are_read() {
        let findings = Findings {
            blank: Some(false),
            challenge: Some(Challenge::Datadome),
            consent: Some(Consent::new("OneTrust", ConsentResult::Rejected)),
            blocked: Some(BlockedRequests { guard: 1, ads: 2, trackers: 3, asked: 4 }),
        };
        let json = serde_json::to_string(&findings).unwrap();
        assert_eq!(serde_json::from_str::<Findings>(&json).unwrap(), findings);
        assert!(json.contains(r#""consent":{"cmp":"onetrust","result":"rejected"}"#), "{json}");
        let later: Findings = serde_json::from_str(r#"{"challenge":"newvendor","blocked":{"ads":1,"x":2}}"#).unwrap();
        assert_eq!(later.challenge, Some(Challenge::Unknown));
        assert_eq!(later.blocked, Some(BlockedRequests { ads: 1, ..BlockedRequests::default() }));
        assert_eq!(serde_json::to_string(&Findings::default()).unwrap(), "{}");
    }

    #[test]
    fn vendor_names_are_bounded() {
        let name = |text: &str| Consent::new(text, ConsentResult::Hidden).cmp;
        assert_eq!(name("Complianz banner"), "complianz banner");
        assert_eq!(name("a<b>\u{0}&\u{e9}_+3"), "ab_3");
        assert_eq!(name("<>"), "unknown");
        assert_eq!(name(&"x".repeat(1000)).len(), CMP_CHARS);
    }
}
