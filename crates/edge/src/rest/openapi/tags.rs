//! The groups of operations.

/// Grabs.
pub(in super::super) const GRABS: &str = "Grabs";
/// Monitors and their runs.
pub(in super::super) const MONITORS: &str = "Monitors";
/// Jobs that capture sites, and their pages.
pub(in super::super) const SITES: &str = "Sites";
/// Webhooks, and the messages that they receive.
pub(in super::super) const WEBHOOKS: &str = "Webhooks";
/// Proxies of teams.
pub(in super::super) const PROXIES: &str = "Proxies";
/// Balance, pricing and the document itself.
pub(in super::super) const ACCOUNT: &str = "Account";
