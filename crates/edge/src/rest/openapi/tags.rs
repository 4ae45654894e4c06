//! The groups of operations.

/// Grabs.
pub(in super::super) const GRABS: &str = "Grabs";
/// Webhooks, and the messages that they receive.
pub(in super::super) const WEBHOOKS: &str = "Webhooks";
/// Balance, pricing and the document itself.
pub(in super::super) const ACCOUNT: &str = "Account";
