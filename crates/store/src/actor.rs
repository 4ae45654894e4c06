//! Who makes a change, as the audit trail records it.

use std::net::IpAddr;

use grabd_domain::Timestamp;

/// Who makes a change, from where and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// `user:` and the id of a user, `command:` and the system user that ran it, `stripe`, or
    /// `service` for what the service does by itself.
    pub name: String,
    /// The network address of the request; `None` for commands and for the service itself.
    pub address: Option<IpAddr>,
    /// Current time.
    pub now: Timestamp,
}
