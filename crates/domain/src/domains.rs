//! Rules for the domains of captured pages.
//!
//! A rule covers a domain and all its subdomains. A denied domain is never captured. If any domain is allowed, only
//! allowed ones are captured; a denial is stronger.

use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;

use psl::Type;
use url::Host;

use crate::grabs::{Failure, FailureReason};
use crate::target::{TargetHost, TargetUrl, is_well_formed_name};

/// A domain of a rule: at least two labels, in lower case and ASCII.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Domain(String);

/// Why a text is not the domain of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DomainError {
    /// It is not a DNS name.
    #[error("must be a domain such as example.com, without a scheme, a path or a wildcard; subdomains are included")]
    Malformed,
    /// It is an IP address.
    #[error("must be a domain; for addresses use egress.deny_cidrs")]
    Address,
    /// Everybody can register names below it, so a rule would cover the sites of many unrelated owners.
    #[error("must not be a public suffix such as com or co.uk; name a domain below it")]
    PublicSuffix,
}

/// What a rule says about its domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DomainRule {
    /// It is not captured.
    Deny,
    /// It is captured. If there is any such rule, other domains are not.
    Allow,
}

impl DomainRule {
    /// The name in commands and in the database's documentation.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Allow => "allow",
        }
    }
}

impl Domain {
    /// Parses a domain. International names are converted to ASCII.
    ///
    /// # Errors
    /// See [`DomainError`]. Suffixes of companies, such as `github.io`, are domains like others: denying all sites of a
    /// host is what an operator may want.
    pub fn parse(text: &str) -> Result<Self, DomainError> {
        let name = match Host::parse(text.trim()) {
            Ok(Host::Domain(name)) => name,
            Ok(Host::Ipv4(_) | Host::Ipv6(_)) => return Err(DomainError::Address),
            Err(_) => return Err(DomainError::Malformed),
        };
        let name = name.strip_suffix('.').unwrap_or(&name).to_ascii_lowercase();
        let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
        if !is_name || !is_well_formed_name(&name) {
            return Err(DomainError::Malformed);
        }
        let suffix = psl::suffix(name.as_bytes());
        let is_suffix = suffix.is_some_and(|suffix| suffix == name.as_str() && suffix.typ() != Some(Type::Private));
        if is_suffix || !name.contains('.') {
            return Err(DomainError::PublicSuffix);
        }
        Ok(Self(name))
    }

    /// The domain.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Domain {
    type Err = DomainError;

    fn from_str(text: &str) -> Result<Self, DomainError> {
        Self::parse(text)
    }
}

/// All rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DomainRules {
    deny: HashSet<String>,
    allow: HashSet<String>,
}

impl DomainRules {
    /// Whether there are none, so that every page may be captured.
    pub fn is_empty(&self) -> bool {
        self.deny.is_empty() && self.allow.is_empty()
    }

    /// Whether a document may be loaded from this URL. Others than those of the web are no documents of a domain.
    pub fn allows_url(&self, url: &str) -> bool {
        TargetUrl::restore(url).is_none_or(|url| self.allows(&url.host()))
    }

    /// The rules for domains that were parsed before.
    pub fn restore(deny: Vec<String>, allow: Vec<String>) -> Self {
        Self { deny: deny.into_iter().collect(), allow: allow.into_iter().collect() }
    }

    /// The domains of all rules of a kind, sorted.
    pub fn domains(&self, rule: DomainRule) -> Vec<String> {
        let of_kind = match rule {
            DomainRule::Deny => &self.deny,
            DomainRule::Allow => &self.allow,
        };
        let mut domains: Vec<String> = of_kind.iter().cloned().collect();
        domains.sort();
        domains
    }

    /// The failure of a grab whose page led to a domain that may not be captured.
    pub fn failure() -> Failure {
        Failure::new(FailureReason::RenderBlocked, "The page led to a domain that this service does not capture.")
    }

    /// Whether a page of this host may be captured. Addresses match no rule.
    pub fn allows(&self, host: &TargetHost) -> bool {
        let covers = |rules: &HashSet<String>| match host {
            TargetHost::Name(name) => with_parents(name).any(|domain| rules.contains(domain)),
            TargetHost::Address(_) => false,
        };
        !covers(&self.deny) && (self.allow.is_empty() || covers(&self.allow))
    }
}

impl FromIterator<(Domain, DomainRule)> for DomainRules {
    fn from_iter<I: IntoIterator<Item = (Domain, DomainRule)>>(rules: I) -> Self {
        let mut all = Self::default();
        for (Domain(domain), rule) in rules {
            match rule {
                DomainRule::Deny => all.deny.insert(domain),
                DomainRule::Allow => all.allow.insert(domain),
            };
        }
        all
    }
}

/// A name and the domains that contain it, the most specific first.
fn with_parents(name: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(name), |name| name.split_once('.').map(|(_, parent)| parent))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(deny: &[&str], allow: &[&str]) -> DomainRules {
        let of = |names: &[&str], rule| {
            let parse = move |name: &&str| (Domain::parse(name).unwrap(), rule);
            names.iter().map(parse).collect::<Vec<_>>()
        };
        of(deny, DomainRule::Deny).into_iter().chain(of(allow, DomainRule::Allow)).collect()
    }

    fn allows(rules: &DomainRules, name: &str) -> bool {
        rules.allows(&TargetHost::Name(name.to_owned()))
    }

    #[test]
    fn domain_is_normalized_and_public_suffixes_are_refused() {
        for (text, expected) in [
            ("Example.COM", Ok("example.com")),
            (" example.com. ", Ok("example.com")),
            ("a.b.example.co.uk", Ok("a.b.example.co.uk")),
            ("bücher.example.de", Ok("xn--bcher-kva.example.de")),
            ("github.io", Ok("github.io")),
            ("com", Err(DomainError::PublicSuffix)),
            ("co.uk", Err(DomainError::PublicSuffix)),
            ("localhost", Err(DomainError::PublicSuffix)),
            ("192.0.2.1", Err(DomainError::Address)),
            ("[2001:db8::1]", Err(DomainError::Address)),
            ("*.example.com", Err(DomainError::Malformed)),
            (".example.com", Err(DomainError::Malformed)),
            ("a..example.com", Err(DomainError::Malformed)),
            ("https://example.com", Err(DomainError::Malformed)),
            ("example.com/path", Err(DomainError::Malformed)),
            ("", Err(DomainError::Malformed)),
        ] {
            assert_eq!(Domain::parse(text).as_ref().map(Domain::as_str), expected.as_ref().copied(), "{text:?}");
        }
    }

    #[test]
    fn rule_covers_subdomains_and_nothing_else() {
        let rules = rules(&["example.com"], &[]);
        for (name, allowed) in [
            ("example.com", false),
            ("www.example.com", false),
            ("a.b.example.com", false),
            ("notexample.com", true),
            ("example.com.evil.net", true),
            ("example.org", true),
        ] {
            assert_eq!(allows(&rules, name), allowed, "{name}");
        }
        assert!(rules.allows(&TargetHost::Address("192.0.2.1".parse().unwrap())));
    }

    #[test]
    fn allowed_domains_exclude_all_others_and_denials_are_stronger() {
        let rules = rules(&["bad.example.com"], &["example.com"]);
        for (name, allowed) in
            [("example.com", true), ("good.example.com", true), ("bad.example.com", false), ("example.org", false)]
        {
            assert_eq!(allows(&rules, name), allowed, "{name}");
        }
        assert!(!rules.allows(&TargetHost::Address("192.0.2.1".parse().unwrap())));
        assert!(allows(&DomainRules::default(), "example.org"));
        assert!(DomainRules::default().is_empty() && !rules.is_empty());
        assert_eq!(rules.domains(DomainRule::Allow), ["example.com"]);
        let of_kind = |rule| rules.domains(rule);
        assert_eq!(DomainRules::restore(of_kind(DomainRule::Deny), of_kind(DomainRule::Allow)), rules);
    }

    #[test]
    fn documents_are_checked_by_the_host_of_their_url() {
        let denied = rules(&["example.com"], &[]);
        for (url, allowed) in [
            ("https://user@www.EXAMPLE.com.:8443/x?y#z", false),
            ("http://example.com%2e/", false),
            ("https://example.org/?http://example.com/", true),
            ("about:srcdoc", true),
            ("data:text/html,example.com", true),
            ("blob:https://example.com/1", true),
        ] {
            assert_eq!(denied.allows_url(url), allowed, "{url}");
        }
        assert!(!rules(&[], &["example.com"]).allows_url("https://192.0.2.1/"));
    }
}
