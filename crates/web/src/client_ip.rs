//! The client address of a request.

use std::net::{IpAddr, Ipv4Addr};

use axum::extract::FromRequestParts;
use http::request::Parts;

/// The client address for rate limits. A layer around [`router`](crate::router) adds it to the extensions of each
/// request; requests without it share one limit.
#[derive(Clone, Copy, Debug)]
pub struct Address(pub IpAddr);

/// The client address, as the key of rate limits.
#[derive(Clone, Copy)]
pub(crate) struct ClientIp(pub(crate) IpAddr);

impl ClientIp {
    /// The address of the client that sent this request.
    pub(crate) fn of(parts: &Parts) -> Self {
        Self(parts.extensions.get().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |Address(address)| *address))
    }
}

impl<S: Sync> FromRequestParts<S> for ClientIp {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(Self::of(parts))
    }
}
