//! How hints get to other processes.

use std::fmt;

/// How hints get to the other processes.
#[derive(Clone, PartialEq, Eq)]
pub enum BusSettings {
    /// There are no other processes.
    InProcess,
    /// By `NOTIFY` of the PostgreSQL database.
    Database,
    /// By these NATS servers: `nats://` or `tls://` URLs, separated by commas, which may contain credentials.
    Nats(String),
}

/// The servers are not shown, since their URLs may contain passwords.
impl fmt::Debug for BusSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InProcess => "InProcess",
            Self::Database => "Database",
            Self::Nats(_) => "Nats(…)",
        })
    }
}
