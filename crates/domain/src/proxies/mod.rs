//! Proxies of teams: servers through which the pages of a capture are loaded.
//!
//! `proxy_url` parses where a proxy is, `problem` lists why one does not work, and `registration` validates what
//! callers send.

mod problem;
mod proxy_url;
mod registration;

use std::fmt;

pub use problem::ProxyProblem;
pub use proxy_url::{ProxyScheme, ProxyUrl, URL_BYTES};
pub use registration::{NewProxy, ProxyChange, ProxyRequest};

use crate::Timestamp;
use crate::credentials::Environment;
use crate::ids::{ProxyId, TeamId};

/// Maximum number of proxies of a team in each environment.
pub const MAX_PROXIES: u64 = 20;
/// Maximum length of a name in characters.
pub const NAME_CHARS: usize = 60;
/// Maximum length of a user name and of a password in bytes: what SOCKS5 can transfer (RFC 1929).
pub const LOGIN_BYTES: usize = 255;

/// A proxy as callers see it: without its user name and password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proxy {
    /// Its id.
    pub id: ProxyId,
    /// The owning team.
    pub team: TeamId,
    /// The environment whose captures can use it.
    pub environment: Environment,
    /// Its name, for people.
    pub name: String,
    /// Where it is.
    pub url: ProxyUrl,
    /// Whether it has a user name and password.
    pub has_login: bool,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// When a capture last used it, to the minute.
    pub last_used_at: Option<Timestamp>,
    /// The last failure of a capture because of it.
    pub last_error: Option<LastError>,
}

/// A failure because of a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastError {
    /// What was wrong.
    pub problem: ProxyProblem,
    /// When.
    pub at: Timestamp,
}

/// User name and password for a proxy.
#[derive(Clone, PartialEq, Eq)]
pub struct ProxyLogin {
    /// User name, without a colon.
    pub username: String,
    /// Password. May be empty.
    pub password: String,
}

/// What a renderer needs to load pages through a proxy.
#[derive(Clone, PartialEq, Eq)]
pub struct ProxyRoute {
    /// The name, for messages.
    pub name: String,
    /// Where the proxy is.
    pub url: ProxyUrl,
    /// User name and password, if it has them.
    pub login: Option<ProxyLogin>,
}

impl fmt::Debug for ProxyLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProxyLogin(…)")
    }
}

impl fmt::Debug for ProxyRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ProxyRoute").field(&self.name).finish()
    }
}
