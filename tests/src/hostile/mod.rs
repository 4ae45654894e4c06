//! Pages that try to reach forbidden addresses, one for every channel a browser has, and canaries that report hits.
//!
//! [`channels`] is the table of all channels, [`HostileSite`] serves their pages, and [`canary`] listens at their
//! targets. [`unguarded`] is a browser without a guard, in which the pages must reach their canaries: a page that
//! cannot do so proves nothing in the guarded browser. [`browser_state`] is a site that looks for state of an earlier
//! visit. To add a channel, add a row to the table.

pub mod browser_state;
pub mod canary;
pub mod channels;
mod site;
pub mod unguarded;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub use site::{HostileSite, file_content};

/// The address of canaries: local like that of the allowed site, but not allowed.
pub const CANARY: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 3));
/// For notations of the usual loopback address.
pub const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// For notations of the IPv6 loopback address.
pub const LOCALHOST_V6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

/// A way for a page to reach an address.
#[derive(Clone, Copy, Debug)]
pub struct Channel {
    /// The name, which is also the path of the page.
    pub name: &'static str,
    /// The page. `@url@` is the canary's URL with a trailing slash, `@host@` its host and port, `@port@` its port.
    pub payload: Payload,
    /// The address of the canary.
    pub at: IpAddr,
    /// Why no request reaches the proxy. `None` if the proxy must have refused one.
    pub no_request: Option<&'static str>,
    /// Why the canary is not hit without a guard. `None` if it must be.
    pub no_control: Option<&'static str>,
}

/// The content of a channel's page.
#[derive(Clone, Copy, Debug)]
pub enum Payload {
    /// HTML that leaves the page in place, so that it can share a page with other parts.
    Markup(&'static str),
    /// The same, as the body of an async function. Besides the placeholders, as `url`, `host` and `port`, it can use
    /// `serve(kind, text)`, which returns a URL of the text on the page's own site, and `frame(html)`.
    Script(&'static str),
    /// A page of its own that stays in place: an optional header line, and the body.
    Standalone(&'static str, &'static str),
    /// A page that navigates away: its status, an optional header line, and the body.
    Document(u16, &'static str, &'static str),
}

impl Channel {
    const fn new(name: &'static str, payload: Payload) -> Self {
        Self { name, payload, at: CANARY, no_request: None, no_control: None }
    }

    const fn at(self, at: IpAddr) -> Self {
        Self { at, ..self }
    }

    const fn no_request(self, reason: &'static str) -> Self {
        Self { no_request: Some(reason), ..self }
    }

    const fn no_control(self, reason: &'static str) -> Self {
        Self { no_control: Some(reason), ..self }
    }

    /// Whether the whole page navigates away.
    pub const fn is_document(&self) -> bool {
        matches!(self.payload, Payload::Document(..))
    }

    /// Whether the channel can share a page with others.
    pub const fn is_part(&self) -> bool {
        matches!(self.payload, Payload::Markup(_) | Payload::Script(_))
    }
}
