//! Proxies for display.

use grabd_domain::credentials::Environment;
use grabd_domain::proxies::{LastError, Proxy};

use crate::environments::environment_name;
use crate::team::TeamContext;
use crate::time_format::Moment;

/// A proxy as a page shows it.
pub(super) struct ProxyView {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) url: String,
    pub(super) environment: &'static str,
    pub(super) is_live: bool,
    pub(super) has_login: bool,
    /// The paths of its pages.
    pub(super) change: String,
    pub(super) login: String,
    pub(super) delete: String,
    pub(super) last_used: Option<Moment>,
    pub(super) last_error: Option<ErrorView>,
}

/// Why a capture failed because of a proxy.
pub(super) struct ErrorView {
    /// A sentence about the proxy.
    pub(super) text: String,
    pub(super) at: Moment,
}

impl ProxyView {
    pub(super) fn of(proxy: &Proxy, at: &TeamContext) -> Self {
        let Proxy { id, environment, name, url, has_login, last_used_at, last_error, .. } = proxy;
        Self {
            id: id.to_string(),
            name: name.clone(),
            url: url.to_string(),
            environment: environment_name(*environment),
            is_live: *environment == Environment::Live,
            has_login: *has_login,
            change: at.proxy_path(*id, "change"),
            login: at.proxy_path(*id, "login"),
            delete: at.proxy_path(*id, "delete"),
            last_used: last_used_at.map(Moment::from),
            last_error: last_error.map(|LastError { problem, at }| ErrorView {
                text: format!("It {}", problem.predicate()),
                at: at.into(),
            }),
        }
    }
}
