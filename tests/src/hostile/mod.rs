//! Pages that try to reach what no page may, one for every channel a browser has, and canaries that tell when one did.
//!
//! [`channels`] is the table of all of them; [`Hostile`] serves them, [`canary`] listens where they lead,
//! [`unguarded`] is a browser without any guard, in which they must succeed: a page that cannot hit its canary there
//! proves nothing by not hitting it here. [`memory`] is a site that looks for what it left on an earlier visit. To add a channel, add its row to the table.

pub mod canary;
pub mod channels;
pub mod memory;
mod site;
pub mod unguarded;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub use site::{Hostile, file_content};

/// Where canaries sit: an address of this machine like that of the allowed site, but not allowed.
pub const CANARY: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 3));
/// For spellings that lead to the usual address of loopback.
pub const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// For spellings that lead to that of IPv6.
pub const LOCALHOST_V6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

/// One way for a page to reach an address.
#[derive(Clone, Copy, Debug)]
pub struct Channel {
    /// Its name, which is also its page's path.
    pub name: &'static str,
    /// The page. `@url@` is the canary's address as a URL that ends in a slash, `@host@` its host and port, `@port@` its port.
    pub way: Way,
    /// Where its canary listens.
    pub at: IpAddr,
    /// Why the proxy does not even hear of it; none: it must have refused it.
    pub silenced: Option<&'static str>,
    /// Why the canary is not hit without a guard either; none: it must be.
    pub uncontrolled: Option<&'static str>,
}

/// What a channel's page does.
#[derive(Clone, Copy, Debug)]
pub enum Way {
    /// A piece of a page that stays what it is, whatever becomes of the piece.
    Markup(&'static str),
    /// The same, as the body of an asynchronous function. Beside the placeholders, as `url`, `host` and `port`, it
    /// knows `serve(kind, text)`, the address of such a text on the page's own site, and `frame(html)`.
    Script(&'static str),
    /// A page of its own that stays what it is: a header line or none, and the body.
    Alone(&'static str, &'static str),
    /// A page that leads away as a whole: its status, a header line or none, and the body.
    Document(u16, &'static str, &'static str),
}

impl Channel {
    const fn new(name: &'static str, way: Way) -> Self {
        Self { name, way, at: CANARY, silenced: None, uncontrolled: None }
    }

    const fn at(self, at: IpAddr) -> Self {
        Self { at, ..self }
    }

    const fn silenced(self, why: &'static str) -> Self {
        Self { silenced: Some(why), ..self }
    }

    const fn uncontrolled(self, why: &'static str) -> Self {
        Self { uncontrolled: Some(why), ..self }
    }

    /// Does it lead the whole page away?
    pub const fn is_document(&self) -> bool {
        matches!(self.way, Way::Document(..))
    }

    /// May its page hold others, too?
    pub const fn is_part(&self) -> bool {
        matches!(self.way, Way::Markup(_) | Way::Script(_))
    }
}
