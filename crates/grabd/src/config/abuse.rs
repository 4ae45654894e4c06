//! Section `abuse`.

use grabd_domain::contact_link::ContactLink;
use grabd_domain::domains::{Domain, DomainRule};
use grabd_engine::{Operations, admission};
use serde::Deserialize;

use super::{Audit, Problems, lists};

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
    /// If users can sign up or buy credits.
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

impl Abuse {
    pub(super) fn validate(&self, problems: &mut Problems) {
        problems.at_least_one("abuse.failed_seconds_per_minute", self.failed_seconds_per_minute.into());
        problems.at_least_one("abuse.failed_seconds_per_minute_unpaid", self.failed_seconds_per_minute_unpaid.into());
        if self.paid_slots_percent > 100 {
            problems.add("abuse.paid_slots_percent", &self.paid_slots_percent.to_string(), "at most 100");
        }
        if !self.contact.is_empty() && ContactLink::parse(&self.contact).is_err() {
            let allowed = "an e-mail address such as abuse@example.com, or an https URL";
            problems.add("abuse.contact", &self.contact, allowed);
        }
    }

    /// The limits of rendering, as the engine takes them. `is_open`: users can sign up or buy credits.
    pub(crate) const fn admission(&self, is_open: bool) -> admission::Settings {
        admission::Settings {
            has_strangers: self.strangers.applies(is_open),
            failed_seconds_per_minute: self.failed_seconds_per_minute,
            failed_seconds_per_minute_unpaid: self.failed_seconds_per_minute_unpaid,
            paid_slots_percent: self.paid_slots_percent,
        }
    }
}

/// The settings of this section and of `audit`, as the engine takes them.
pub(crate) fn operations(abuse: &Abuse, audit: &Audit) -> Operations {
    let of = |domains: &[Domain], rule| domains.iter().map(move |domain| (domain.clone(), rule)).collect::<Vec<_>>();
    let mut domains = of(&abuse.deny_domains, DomainRule::Deny);
    domains.extend(of(&abuse.allow_domains, DomainRule::Allow));
    // Checked by `validate`.
    let abuse_contact = ContactLink::parse(&abuse.contact).ok();
    Operations { domains, audit_retention: audit.retention(), abuse_contact, ..Operations::default() }
}
