//! A team's jobs that capture sites: one file per page, or per form without a page of its own. `fields` has the form fields, and
//! `view` prepares jobs and pages for display.

pub(crate) mod cancel;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod download;
pub(crate) mod events;
mod fields;
pub(crate) mod list;
pub(crate) mod show;
mod view;

use grabd_domain::Fault;
use grabd_domain::credentials::Caller;
use grabd_domain::ids::SiteId;
use grabd_domain::site::Site;
use grabd_engine::{Error, sites};

use crate::environments::ENVIRONMENTS;
use crate::page::Layout;
use crate::problem::Problem;
use crate::state::Web;
use crate::team::TeamContext;

/// The list.
pub(crate) const LIST: &str = "/teams/{team}/sites";
/// The form for a new job.
pub(crate) const NEW: &str = "/teams/{team}/sites/new";
/// One job with its pages.
pub(crate) const ONE: &str = "/teams/{team}/sites/{site}";
/// The event stream of a job.
pub(crate) const EVENTS: &str = "/teams/{team}/sites/{site}/events";
/// The images of a job, as an archive.
pub(crate) const DOWNLOAD: &str = "/teams/{team}/sites/{site}/download";
/// Cancels a job.
pub(crate) const CANCEL: &str = "/teams/{team}/sites/{site}/cancel";
/// Deletes a job.
pub(crate) const DELETE: &str = "/teams/{team}/sites/{site}/delete";
/// The path segment of these pages, for the navigation.
pub(crate) const PAGE: &str = "sites";

impl TeamContext {
    /// The path of a job's page, or of the page `page` below it.
    fn site_path(&self, site: SiteId, page: &str) -> String {
        let slash = if page.is_empty() { "" } else { "/" };
        self.path(&format!("{PAGE}/{site}{slash}{page}"))
    }

    /// Finds the team's job in either environment, and the caller for that environment. Does not count against the rate limit.
    ///
    /// # Errors
    /// When the team has no such job.
    async fn find_site(&self, web: &Web, id: &str) -> Result<(Site, Caller), Problem> {
        let unknown = || Problem::not_found("This team has no such site job.");
        let id: SiteId = id.parse().map_err(|_| unknown())?;
        for environment in ENVIRONMENTS {
            let caller = self.team_member.uncounted_caller(environment);
            match sites::get(&web.core, caller, id).await.map_err(Error::into_fault) {
                Ok(site) => return Ok((site, caller)),
                Err(Fault::NotFound { .. }) => {}
                Err(fault) => return Err(fault.into()),
            }
        }
        Err(unknown())
    }

    /// The same, counted against the rate limit of the job's environment.
    ///
    /// # Errors
    /// When the team has no such job, or has reached its rate limit.
    async fn find_site_counted(&self, web: &Web, id: &str) -> Result<(Site, Caller), Problem> {
        let (site, _) = self.find_site(web, id).await?;
        let caller = self.team_member.admit(&web.core, site.environment).await?;
        Ok((site, caller))
    }
}

impl Web {
    fn site_layout(&self, at: &TeamContext) -> Layout {
        self.team_layout(at, PAGE)
    }
}
