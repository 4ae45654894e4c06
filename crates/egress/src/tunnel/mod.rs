//! Connections through the proxy of a team.
//!
//! `http_connect` and `socks5` ask the proxy for a connection, and `stream` is what results. A failure becomes
//! a [`ProxyProblem`], and nothing that the proxy has sent is kept.
//!
//! *Invariant:* the proxy's own address is checked like that of a page, at each connection. The target's name is
//! resolved and checked before the proxy is asked, and the proxy gets the checked address in place of the name, so that
//! it cannot be used to reach what the guard refuses.

mod http_connect;
mod socks5;
mod stream;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use grabd_domain::address::AddressError;
use grabd_domain::proxies::{ProxyProblem, ProxyRoute, ProxyScheme};
use grabd_domain::target::TargetHost;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

use crate::dial::interleave;
use crate::tls::ClientTls;
use crate::{EgressError, Guard};
pub use stream::EgressStream;

/// Limit of a connection through a proxy, from the connection to the proxy to its last answer.
const TUNNEL_LIMIT: Duration = Duration::from_secs(8);

/// Most addresses of a name that a proxy is asked for.
const MAX_TARGETS: usize = 2;

/// A proxy to connect through.
#[derive(Clone, Copy, Debug)]
pub struct Tunnel<'a> {
    /// The proxy.
    pub route: &'a ProxyRoute,
    /// For proxies with `https` URLs.
    pub tls: &'a ClientTls,
    /// An address that is never connected to: that of the caller's own server.
    pub own: IpAddr,
}

impl Tunnel<'_> {
    /// Connects to `host` through the proxy, after `guard` has resolved and checked it.
    ///
    /// # Errors
    /// Any [`EgressError`]. All but [`EgressError::Proxy`] are about the target, and the proxy was not asked.
    pub async fn connect(self, guard: &Guard, host: &TargetHost, port: u16) -> Result<EgressStream, EgressError> {
        let addresses = guard.check_target(host, port).await?;
        if addresses.contains(&self.own) {
            return Err(EgressError::Address { address: self.own, why: AddressError::Own });
        }
        let opened = async {
            for address in interleave(&addresses).into_iter().take(MAX_TARGETS) {
                match self.open(guard, SocketAddr::new(address, port)).await {
                    Err(ProxyProblem::SiteUnreached) => {}
                    opened => return opened,
                }
            }
            Err(ProxyProblem::SiteUnreached)
        };
        let opened = timeout(TUNNEL_LIMIT, opened).await.unwrap_or(Err(ProxyProblem::TimedOut));
        opened.map_err(EgressError::Proxy)
    }

    /// Opens a connection to the proxy and asks it for one to `target`.
    async fn open(self, guard: &Guard, target: SocketAddr) -> Result<EgressStream, ProxyProblem> {
        let url = &self.route.url;
        let stream = guard.connect(url.host(), url.port()).await.map_err(|error| of_proxy(&error))?;
        // A request to the caller's own server would come back here.
        if stream.peer_addr().map_err(|_| ProxyProblem::Broken)?.ip() == self.own {
            return Err(ProxyProblem::NotPublic);
        }
        let mut stream = match url.scheme() {
            ProxyScheme::Http | ProxyScheme::Socks5 => EgressStream::Plain(stream),
            ProxyScheme::Https => {
                let encrypted = self.tls.connect(url.host().clone(), stream).await;
                EgressStream::Tls(Box::new(encrypted.map_err(|_| ProxyProblem::Tls)?))
            }
        };
        self.request(&mut stream, target).await?;
        Ok(stream)
    }

    async fn request<S>(self, stream: &mut S, target: SocketAddr) -> Result<(), ProxyProblem>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        let login = self.route.login.as_ref();
        match self.route.url.scheme() {
            ProxyScheme::Http | ProxyScheme::Https => http_connect::connect(stream, target, login).await,
            ProxyScheme::Socks5 => socks5::connect(stream, target, login).await,
        }
    }
}

/// Why the proxy itself could not be connected to.
fn of_proxy(error: &EgressError) -> ProxyProblem {
    match error {
        EgressError::Address { .. } | EgressError::Name | EgressError::Port => ProxyProblem::NotPublic,
        EgressError::Unresolved => ProxyProblem::Unresolved,
        EgressError::ConnectFailed(_) | EgressError::TimedOut => ProxyProblem::Unreachable,
        EgressError::Proxy(problem) => *problem,
    }
}
