//! Errors of resolving and connecting.

use std::io;
use std::net::IpAddr;

use grabd_domain::address::AddressError;
use grabd_domain::proxies::ProxyProblem;

/// Why a host was not resolved or connected to. For logs, metrics and attribution; never shown to callers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EgressError {
    /// An IP literal, or one of the addresses of a name, is not allowed.
    #[error("{address}: {why}")]
    Address {
        /// The address that was refused.
        address: IpAddr,
        /// The rule that refused it.
        why: AddressError,
    },
    /// The name is local or malformed. It is not looked up.
    #[error("the name is local or malformed")]
    Name,
    /// The port is not allowed.
    #[error("the port is not allowed")]
    Port,
    /// The name has no address, or the resolver failed.
    #[error("the name has no address")]
    Unresolved,
    /// No address accepted the connection.
    #[error("could not connect: {0}")]
    ConnectFailed(io::ErrorKind),
    /// The lookup or the connection timed out.
    #[error("timed out")]
    TimedOut,
    /// The target is allowed, but no connection to it could be made through the proxy.
    #[error("the proxy failed: {}", .0.as_str())]
    Proxy(ProxyProblem),
}

impl EgressError {
    /// Returns whether the guard refused the target. Otherwise the target is allowed but could not be reached.
    pub fn is_refused(&self) -> bool {
        match self {
            Self::Address { .. } | Self::Name | Self::Port => true,
            Self::Unresolved | Self::ConnectFailed(_) | Self::TimedOut | Self::Proxy(_) => false,
        }
    }

    /// The metrics label. There are few distinct values.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Address { why, .. } => match why {
                AddressError::Reserved(_) => "address_reserved",
                AddressError::NotGlobal => "address_not_global",
                AddressError::Own => "address_own",
                AddressError::Denied => "address_denied",
                AddressError::Port => "port",
            },
            Self::Name => "name",
            Self::Port => "port",
            Self::Unresolved => "unresolved",
            Self::ConnectFailed(_) => "connect_failed",
            Self::TimedOut => "timed_out",
            Self::Proxy(_) => "proxy",
        }
    }
}
