//! Why a connection was not made.

use std::io;
use std::net::IpAddr;

use grabd_domain::address::Refused;

/// Why a connection was not made. For logs, metrics and attribution: never shown to a caller.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A literal, or one of the answers for a name, may not be dialled.
    #[error("{address}: {why}")]
    Address {
        /// The address that was refused.
        address: IpAddr,
        /// The rule that refused it.
        why: Refused,
    },
    /// The name is local or malformed, so it was not looked up.
    #[error("the name is not one of the public DNS")]
    Name,
    /// The port may not be dialled.
    #[error("the port is not one for the web")]
    Port,
    /// The name has no address, or no resolver answered for it.
    #[error("the name has no address")]
    Unresolved,
    /// Every checked address turned the connection down.
    #[error("could not connect: {0}")]
    ConnectFailed(io::ErrorKind),
    /// The lookup or the connection took too long.
    #[error("took too long")]
    TimedOut,
}

impl Refusal {
    /// Did the guard say no? Otherwise the target was acceptable, and could not be reached.
    pub fn is_refused(&self) -> bool {
        match self {
            Self::Address { .. } | Self::Name | Self::Port => true,
            Self::Unresolved | Self::ConnectFailed(_) | Self::TimedOut => false,
        }
    }

    /// A label for metrics, of which there are few.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Address { why, .. } => match why {
                Refused::Reserved(_) => "address_reserved",
                Refused::NotGlobal => "address_not_global",
                Refused::Own => "address_own",
                Refused::Denied => "address_denied",
                Refused::Port => "port",
            },
            Self::Name => "name",
            Self::Port => "port",
            Self::Unresolved => "unresolved",
            Self::ConnectFailed(_) => "connect_failed",
            Self::TimedOut => "timed_out",
        }
    }
}
