//! A proxy of a team, as REST shows it.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A server of the team, through which pages can be loaded. Its user name and password are never returned. Further
/// members may appear.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Proxy<'a> {
    /// Id of the proxy, for the capture option `proxy`.
    #[schema(format = "uuid")]
    pub id: Cow<'a, str>,
    /// Its name, for people. Messages of failed captures have it.
    #[schema(max_length = 60)]
    pub name: Cow<'a, str>,
    /// Where it is: `http://HOST:PORT`, `https://HOST:PORT` or `socks5://HOST:PORT`.
    pub url: Cow<'a, str>,
    /// Whether it has a user name and password.
    pub has_login: bool,
    /// Time of creation.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Cow<'a, str>,
    /// Time of the last change.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Cow<'a, str>,
    /// When a capture last used it, to the minute. Null: none has.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_used_at: Option<Cow<'a, str>>,
    /// Why a capture last failed because of it: `not_public`, `unresolved`, `unreachable`, `timed_out`, `tls`,
    /// `not_a_proxy`, `login`, `refused`, `site_unreached` or `broken`. Null: none has, since its URL or login was
    /// changed.
    pub last_error: Option<Cow<'a, str>>,
    /// When that was.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_error_at: Option<Cow<'a, str>>,
}

/// The proxies of the key's team and environment, newest first; 20 at most.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ProxyList<'a> {
    /// The proxies.
    pub data: Vec<Proxy<'a>>,
    /// Always false.
    pub has_more: bool,
}
