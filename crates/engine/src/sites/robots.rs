//! Reads the robots.txt of hosts.

use std::sync::Arc;

use grabd_domain::ids::SiteId;
use grabd_domain::site::{ROBOTS_BYTES, Robots, Scope, origin_of};
use grabd_domain::target::TargetUrl;

use super::documents::{DocumentError, Excess, fetch};
use super::robots_cache::HostRules;
use crate::service::Core;

/// The rules of the host of an address.
pub(super) async fn rules_of(core: &Core, site: SiteId, scope: &Scope, url: &TargetUrl) -> HostRules {
    let (origin, now) = (origin_of(url), core.clock.now());
    let key = (site, origin);
    if let Some(rules) = core.sites.robots.find(&key, now) {
        return rules;
    }
    let rules = match TargetUrl::parse(&format!("{}/robots.txt", key.1)) {
        Ok(url) => read(core, scope, &url).await,
        Err(_) => HostRules::Unreachable,
    };
    core.sites.robots.insert(key, rules.clone(), core.clock.now());
    rules
}

async fn read(core: &Core, scope: &Scope, url: &TargetUrl) -> HostRules {
    let all = || HostRules::Rules(Arc::default());
    match fetch(core, scope, url, ROBOTS_BYTES, Excess::Cut).await {
        Ok(document) if document.status.is_success() => HostRules::Rules(Arc::new(Robots::parse(&document.body))),
        // RFC 9309, section 2.3.1.3: without one, everything is allowed.
        Ok(document) if document.status.is_client_error() => all(),
        Ok(_) => HostRules::Unreachable,
        Err(DocumentError::Private) => HostRules::Private,
        // A domain that the operator does not allow is refused with that reason when a page of it is to be captured.
        Err(DocumentError::OtherSite | DocumentError::Redirects | DocumentError::Domain) => all(),
        Err(error) => {
            tracing::info!(host = %url.host(), %error, cause = ?error, "a robots.txt cannot be read");
            HostRules::Unreachable
        }
    }
}
