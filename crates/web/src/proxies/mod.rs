//! A team's proxies: one file per page. `fields` has the form fields, and `view` prepares proxies for display.

pub(crate) mod change;
pub(crate) mod create;
pub(crate) mod delete;
mod fields;
pub(crate) mod list;
pub(crate) mod login;
mod view;

use grabd_domain::Fault;
use grabd_domain::credentials::Caller;
use grabd_domain::ids::ProxyId;
use grabd_domain::proxies::Proxy;
use grabd_engine::{Error, proxies};

use crate::environments::ENVIRONMENTS;
use crate::page::Layout;
use crate::problem::Problem;
use crate::state::Web;
use crate::team::TeamContext;

/// The list.
pub(crate) const LIST: &str = "/teams/{team}/proxies";
/// The form for a new proxy.
pub(crate) const NEW: &str = "/teams/{team}/proxies/new";
/// Changes the name and the URL.
pub(crate) const CHANGE: &str = "/teams/{team}/proxies/{proxy}/change";
/// Replaces the user name and the password.
pub(crate) const LOGIN: &str = "/teams/{team}/proxies/{proxy}/login";
/// Deletes a proxy.
pub(crate) const DELETE: &str = "/teams/{team}/proxies/{proxy}/delete";

/// The path segment of these pages.
const PAGE: &str = "proxies";

impl TeamContext {
    /// The path of a page about a proxy.
    fn proxy_path(&self, proxy: ProxyId, page: &str) -> String {
        self.path(&format!("{PAGE}/{proxy}/{page}"))
    }

    /// Finds the team's proxy in either environment, and the caller for that environment. Counts against its rate
    /// limit.
    ///
    /// # Errors
    /// When the team has no such proxy, or has reached its rate limit, and when the service has no proxies.
    async fn find_proxy_counted(&self, web: &Web, id: &str) -> Result<(Proxy, Caller), Problem> {
        check_enabled(web)?;
        let unknown = || Problem::not_found("This team has no such proxy.");
        let id: ProxyId = id.parse().map_err(|_| unknown())?;
        for environment in ENVIRONMENTS {
            let found = proxies::get(&web.core, self.team_member.uncounted_caller(environment), id).await;
            match found.map_err(Error::into_fault) {
                Ok(proxy) => return Ok((proxy, self.team_member.admit(&web.core, environment).await?)),
                Err(Fault::NotFound { .. }) => {}
                Err(fault) => return Err(fault.into()),
            }
        }
        Err(unknown())
    }
}

impl Web {
    /// The pages belong to the settings of the team.
    fn proxy_layout(&self, at: &TeamContext) -> Layout {
        self.team_layout(at, "settings")
    }
}

/// Without proxies, these pages do not exist.
fn check_enabled(web: &Web) -> Result<(), Problem> {
    match web.core.has_proxies() {
        true => Ok(()),
        false => Err(Problem::not_found("This service has no proxies.")),
    }
}
