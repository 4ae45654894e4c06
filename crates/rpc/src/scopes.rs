//! The scope that each RPC needs of an API key or an app's access token. This is the only place where scopes are decided,
//! for REST, gRPC and MCP alike. Users have all scopes.

use grabd_domain::Fault;
use grabd_domain::credentials::{Principal, Scope, Scopes};
use grabd_domain::faults::Granted;
use grabd_engine::accounts::Access;

/// What an RPC needs of the credential that calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needed {
    /// The credential must be valid, whatever its scopes.
    AnyCredential,
    /// The credential must have this scope.
    Scope(Scope),
}

/// The decision for the RPC with this path. `None` if there is none: then only a credential with all scopes may call it,
/// so that a new RPC is never open to a restricted one by mistake.
pub(crate) fn needed(path: &str) -> Option<Needed> {
    let needed = match path.strip_prefix("/grabd.v1.")? {
        "AccessService/Authenticate" | "AccessService/TakeRequest" => Needed::AnyCredential,
        // A link is opened with the scopes of the key that signed it, which `links::verify` checks.
        "GrabService/CreateGrab"
        | "GrabService/BatchCreateGrabs"
        | "GrabService/CaptureGrab"
        | "LinkService/OpenLink"
        | "MonitorService/BatchCreateMonitors"
        | "MonitorService/CreateMonitor"
        | "MonitorService/UpdateMonitor"
        | "MonitorService/DeleteMonitor"
        | "MonitorService/CreateMonitorFeed"
        | "MonitorService/DeleteMonitorFeed"
        | "MonitorService/AcceptBaseline"
        | "SiteService/CreateSite"
        | "SiteService/CancelSite"
        | "SiteService/DeleteSite" => Needed::Scope(Scope::Create),
        "GrabService/GetGrab"
        | "GrabService/ListGrabs"
        | "GrabService/WatchGrab"
        | "GrabService/WatchGrabs"
        | "MonitorService/GetMonitor"
        | "MonitorService/ListMonitors"
        | "MonitorService/ListMonitorRuns"
        | "SiteService/GetSite"
        | "SiteService/ListSites"
        | "SiteService/ListSitePages"
        | "MonitorService/GetMonitorHistory"
        | "UsageService/GetUsage"
        | "PricingService/GetPricing" => Needed::Scope(Scope::Read),
        "GrabService/DeleteGrab"
        | "ProxyService/CreateProxy"
        | "ProxyService/GetProxy"
        | "ProxyService/ListProxies"
        | "ProxyService/UpdateProxy"
        | "ProxyService/DeleteProxy"
        | "WebhookService/CreateWebhook"
        | "WebhookService/GetWebhook"
        | "WebhookService/ListWebhooks"
        | "WebhookService/UpdateWebhook"
        | "WebhookService/DeleteWebhook"
        | "WebhookService/RotateWebhookSecret"
        | "WebhookService/TestWebhook"
        | "WebhookService/ListDeliveries"
        | "WebhookService/RedeliverWebhook" => Needed::Scope(Scope::Manage),
        _ => return None,
    };
    Some(needed)
}

/// Checks that a caller may call the RPC with this path.
///
/// # Errors
/// [`Fault::Forbidden`] with the missing scope.
pub(crate) fn check(path: &str, access: Access) -> Result<(), Fault> {
    let Access { caller, scopes } = access;
    let granted = match caller.principal {
        Principal::Grant(_) => Granted::App,
        Principal::Key(_) | Principal::User(_) => Granted::Key(scopes),
    };
    missing(path, scopes).map_or(Ok(()), |needed| Err(Fault::Forbidden { needed, granted }))
}

/// The first scope that these lack for the RPC with this path.
fn missing(path: &str, granted: Scopes) -> Option<Scope> {
    match needed(path) {
        Some(Needed::AnyCredential) => None,
        Some(Needed::Scope(scope)) => Some(scope).filter(|scope| !granted.includes(*scope)),
        None => Scope::ALL.into_iter().find(|scope| !granted.includes(*scope)),
    }
}

#[cfg(test)]
mod tests {
    use prost::Message;
    use prost_types::FileDescriptorSet;

    use super::*;

    /// The paths of all RPCs of the public services.
    fn paths() -> Vec<String> {
        let set = FileDescriptorSet::decode(grabd_proto::DESCRIPTOR_SET).unwrap();
        let files = set.file.iter().filter(|file| file.package() == "grabd.v1");
        let services = files.flat_map(|file| &file.service);
        services
            .flat_map(|service| {
                service.method.iter().map(|method| format!("/grabd.v1.{}/{}", service.name(), method.name()))
            })
            .collect()
    }

    /// What each RPC needs, written a second time: a change of a decision must be made twice.
    const TABLE: [(&str, &str); 44] = [
        ("AccessService/Authenticate", ""),
        ("AccessService/TakeRequest", ""),
        ("GrabService/BatchCreateGrabs", "create"),
        ("GrabService/CaptureGrab", "create"),
        ("GrabService/CreateGrab", "create"),
        ("GrabService/DeleteGrab", "manage"),
        ("GrabService/GetGrab", "read"),
        ("GrabService/ListGrabs", "read"),
        ("GrabService/WatchGrab", "read"),
        ("GrabService/WatchGrabs", "read"),
        ("LinkService/OpenLink", "create"),
        ("MonitorService/AcceptBaseline", "create"),
        ("MonitorService/BatchCreateMonitors", "create"),
        ("MonitorService/CreateMonitor", "create"),
        ("MonitorService/CreateMonitorFeed", "create"),
        ("MonitorService/DeleteMonitor", "create"),
        ("MonitorService/DeleteMonitorFeed", "create"),
        ("MonitorService/GetMonitor", "read"),
        ("MonitorService/GetMonitorHistory", "read"),
        ("MonitorService/ListMonitorRuns", "read"),
        ("MonitorService/ListMonitors", "read"),
        ("MonitorService/UpdateMonitor", "create"),
        ("PricingService/GetPricing", "read"),
        ("ProxyService/CreateProxy", "manage"),
        ("ProxyService/DeleteProxy", "manage"),
        ("ProxyService/GetProxy", "manage"),
        ("ProxyService/ListProxies", "manage"),
        ("ProxyService/UpdateProxy", "manage"),
        ("SiteService/CancelSite", "create"),
        ("SiteService/CreateSite", "create"),
        ("SiteService/DeleteSite", "create"),
        ("SiteService/GetSite", "read"),
        ("SiteService/ListSitePages", "read"),
        ("SiteService/ListSites", "read"),
        ("UsageService/GetUsage", "read"),
        ("WebhookService/CreateWebhook", "manage"),
        ("WebhookService/DeleteWebhook", "manage"),
        ("WebhookService/GetWebhook", "manage"),
        ("WebhookService/ListDeliveries", "manage"),
        ("WebhookService/ListWebhooks", "manage"),
        ("WebhookService/RedeliverWebhook", "manage"),
        ("WebhookService/RotateWebhookSecret", "manage"),
        ("WebhookService/TestWebhook", "manage"),
        ("WebhookService/UpdateWebhook", "manage"),
    ];

    #[test]
    fn every_rpc_has_a_decision_for_every_scope() {
        let mut paths = paths();
        paths.sort();
        let listed: Vec<String> = TABLE.iter().map(|(name, _)| format!("/grabd.v1.{name}")).collect();
        assert_eq!(paths, listed, "a new RPC needs a line in `needed` and in the table of this test");
        for (path, (_, expected)) in paths.iter().zip(TABLE) {
            assert!(needed(path).is_some(), "{path} has no scope");
            for bits in 1..=7 {
                let granted = Scopes::from_bits(bits).unwrap();
                let allowed = expected.is_empty() || granted.iter().any(|scope| scope.as_str() == expected);
                assert_eq!(missing(path, granted).is_none(), allowed, "{path} with {granted}");
            }
        }
    }

    #[test]
    fn rpc_without_a_decision_needs_all_scopes() {
        let restricted = Scopes::new([Scope::Read, Scope::Create]).unwrap();
        for path in ["/grabd.v1.GrabService/Later", "/grabd.v2.GrabService/GetGrab", "/", ""] {
            assert_eq!(missing(path, restricted), Some(Scope::Manage));
            assert_eq!(missing(path, Scopes::ALL), None);
        }
    }
}
