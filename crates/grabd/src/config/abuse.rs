//! Sections `abuse` and `audit`.

use std::ops::RangeInclusive;
use std::time::Duration;

use grabd_domain::abuse_contact::AbuseContact;
use grabd_domain::domains::{Domain, DomainRule};
use grabd_engine::{Operations, admission};
use serde::Deserialize;

use super::{Problems, lists};

/// Days for which entries of the audit trail may be kept. The database keeps those of the last 30 days in any case.
const RETENTION_DAYS: RangeInclusive<u32> = 31..=3650;

/// Section `abuse`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "default.toml says what each is")]
pub struct Abuse {
    pub strangers: Strangers,
    pub failed_seconds_per_minute: u32,
    pub failed_seconds_per_minute_unpaid: u32,
    pub paid_slots_percent: u32,
    #[serde(deserialize_with = "lists::list")]
    pub deny_domains: Vec<Domain>,
    #[serde(deserialize_with = "lists::list")]
    pub allow_domains: Vec<Domain>,
    pub contact: String,
    pub respect_opt_out: bool,
}

/// Whether limits against strangers apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Strangers {
    /// If people can sign up or buy credits.
    Auto,
    /// In any case.
    Always,
    /// In no case.
    Never,
}

impl Strangers {
    /// Whether they apply in a service that is open to strangers or not.
    pub const fn applies(self, is_open: bool) -> bool {
        match self {
            Self::Auto => is_open,
            Self::Always => true,
            Self::Never => false,
        }
    }
}

/// Section `audit`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "default.toml says what each is")]
pub struct Audit {
    pub retention_days: u32,
}

impl Abuse {
    pub(super) fn validate(&self, problems: &mut Problems) {
        if !self.contact.is_empty() && AbuseContact::parse(&self.contact).is_err() {
            let allowed = "an e-mail address such as abuse@example.com, or an https URL";
            problems.add("abuse.contact", &self.contact, allowed);
        }
    }

    /// The limits of rendering, as the engine takes them. `is_open`: people can sign up or buy credits.
    pub(crate) const fn admission(&self, is_open: bool) -> admission::Settings {
        admission::Settings {
            has_strangers: self.strangers.applies(is_open),
            failed_seconds_per_minute: self.failed_seconds_per_minute,
            failed_seconds_per_minute_unpaid: self.failed_seconds_per_minute_unpaid,
            paid_slots_percent: self.paid_slots_percent,
        }
    }
}

impl Audit {
    pub(super) fn validate(&self, problems: &mut Problems) {
        if !RETENTION_DAYS.contains(&self.retention_days) {
            let (min, max) = (RETENTION_DAYS.start(), RETENTION_DAYS.end());
            let seen = self.retention_days.to_string();
            problems.add("audit.retention_days", &seen, &format!("from {min} to {max}"));
        }
    }
}

/// The settings of both sections, as the engine takes them.
pub(crate) fn operations(abuse: &Abuse, audit: &Audit) -> Operations {
    let of = |domains: &[Domain], rule| domains.iter().map(move |domain| (domain.clone(), rule)).collect::<Vec<_>>();
    let mut domains = of(&abuse.deny_domains, DomainRule::Deny);
    domains.extend(of(&abuse.allow_domains, DomainRule::Allow));
    let audit_retention = Duration::from_secs(u64::from(audit.retention_days) * 24 * 60 * 60);
    // Checked by `validate`.
    let abuse_contact = AbuseContact::parse(&abuse.contact).ok();
    Operations { domains, audit_retention, abuse_contact, ..Operations::default() }
}
