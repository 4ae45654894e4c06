//! The limits and retention periods of the service, as this process has them.

use std::time::Duration;

use grabd_domain::domains::{Domain, DomainRule};

use super::LimitSettings;
use super::Operator;
use crate::service::Core;

/// The limits and retention periods.
#[derive(Clone, Debug)]
pub struct ServiceLimits {
    /// Those of teams without an override, and those of accounts.
    pub settings: LimitSettings,
    /// The configured rules for domains.
    pub domains: Vec<(Domain, DomainRule)>,
    /// Maximum size of an image file in bytes.
    pub image_max_bytes: u64,
    /// How many apps one address may register per hour.
    pub registrations_per_hour: u32,
    /// How many apps may be registered that nobody has authorized.
    pub unused_clients: u32,
    /// How long entries of the audit trail are kept.
    pub audit_retention: Duration,
    /// Whether mail is sent. Otherwise accounts count as verified.
    pub sends_mail: bool,
}

/// The limits and retention periods.
pub fn service_limits(core: &Core, _: &Operator) -> ServiceLimits {
    let (settings, oauth) = (&core.settings, core.oauth());
    ServiceLimits {
        settings: settings.limits(),
        domains: settings.operations.domains.clone(),
        image_max_bytes: settings.image_max_bytes,
        registrations_per_hour: oauth.registrations_per_hour,
        unused_clients: oauth.unused_clients,
        audit_retention: settings.operations.audit_retention,
        sends_mail: core.sends_mail(),
    }
}
