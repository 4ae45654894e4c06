//! The areas of the store: what its reads and changes concern. An area is a reference to the store and costs nothing.

use crate::Store;

/// Defines an area, and the method of the store that returns it.
macro_rules! area {
    ($area:ident, $method:ident, $about:literal) => {
        #[doc = $about]
        #[derive(Clone, Copy, Debug)]
        pub struct $area<'a> {
            pub(crate) store: &'a Store,
        }

        impl Store {
            #[doc = $about]
            pub const fn $method(&self) -> $area<'_> {
                $area { store: self }
            }
        }
    };
}

area!(Grabs, grabs, "Grabs, their jobs and idempotency keys.");
area!(Credits, credits, "Credits: lots, the ledger, and alerts about low balances.");
area!(Accounts, accounts, "Teams, people, keys, sessions and second factors.");
area!(OAuth, oauth, "Apps, and what people granted them.");
area!(Webhooks, webhooks, "Webhook endpoints and deliveries.");
area!(Monitors, monitors, "Monitors and their runs.");
area!(Proxies, proxies, "Proxies of teams.");
area!(Sites, sites, "Jobs that capture sites, and their pages.");
area!(AuditTrail, audit, "The audit trail.");
area!(Requests, requests, "API requests that the members of a team can look up.");
area!(Limits, limits, "Limits of teams, and requests that processes count together.");
area!(Operators, operator, "Rules for domains, and reads for operators across all teams.");
area!(Retention, retention, "What is deleted, and when.");
area!(ImageStore, images, "Where images are, and which are being moved.");
area!(Identity, identity, "The keys of the service for signatures of its requests to captured sites.");
area!(Vault, vault, "Secrets that are stored encrypted.");
area!(Evidence, evidence, "The keys that sign evidence of captures.");
area!(Nodes, nodes, "The processes of a cluster.");
