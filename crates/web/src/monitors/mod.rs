//! A team's monitors: one file per page, or per form without a page of its own. `fields` has the form fields, and `several` that
//! for the pages of several monitors, `view` prepares monitors and runs for display, and `chart` draws how much the image differed.

pub(crate) mod accept;
pub(crate) mod change;
mod chart;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod feed;
pub(crate) mod feed_address;
mod fields;
mod form_page;
pub(crate) mod history;
pub(crate) mod list;
mod several;
pub(crate) mod show;
pub(crate) mod switch;
mod view;

use grabd_domain::Fault;
use grabd_domain::credentials::Caller;
use grabd_domain::ids::MonitorId;
use grabd_domain::monitor::Monitor;
use grabd_engine::{Error, monitors};

use crate::environments::ENVIRONMENTS;
use crate::page::Layout;
use crate::problem::Problem;
use crate::state::Web;
use crate::team::TeamContext;

/// The list.
pub(crate) const LIST: &str = "/teams/{team}/monitors";
/// The form for a new monitor.
pub(crate) const NEW: &str = "/teams/{team}/monitors/new";
/// One monitor with its runs.
pub(crate) const ONE: &str = "/teams/{team}/monitors/{monitor}";
/// Changes a monitor.
pub(crate) const CHANGE: &str = "/teams/{team}/monitors/{monitor}/change";
/// Pauses a monitor.
pub(crate) const PAUSE: &str = "/teams/{team}/monitors/{monitor}/pause";
/// Resumes a monitor.
pub(crate) const RESUME: &str = "/teams/{team}/monitors/{monitor}/resume";
/// Makes a capture the baseline.
pub(crate) const ACCEPT: &str = "/teams/{team}/monitors/{monitor}/accept";
/// The history of a monitor as an archive.
pub(crate) const HISTORY: &str = "/teams/{team}/monitors/{monitor}/history.zip";
/// Creates the addresses of the feed and the badge.
pub(crate) const FEED: &str = "/teams/{team}/monitors/{monitor}/feed";
/// Removes them.
pub(crate) const FEED_OFF: &str = "/teams/{team}/monitors/{monitor}/feed/off";
/// The feed.
pub(crate) const ATOM: &str = "/feeds/{secret}/feed.atom";
/// The badge.
pub(crate) const BADGE: &str = "/feeds/{secret}/badge.svg";
/// Deletes a monitor.
pub(crate) const DELETE: &str = "/teams/{team}/monitors/{monitor}/delete";
/// The field of the list's query with the number of monitors that were created together.
const CREATED: &str = "created";
/// The path segment of these pages, for the navigation.
pub(crate) const PAGE: &str = "monitors";

impl TeamContext {
    /// The path of a monitor's page, or of the page `page` below it.
    fn monitor_path(&self, monitor: MonitorId, page: &str) -> String {
        let slash = if page.is_empty() { "" } else { "/" };
        self.path(&format!("{PAGE}/{monitor}{slash}{page}"))
    }

    /// Finds the team's monitor in either environment, and the caller for that environment. Counts against its rate limit.
    ///
    /// # Errors
    /// When the team has no such monitor, or has reached its rate limit.
    async fn find_monitor_counted(&self, web: &Web, id: &str) -> Result<(Monitor, Caller), Problem> {
        let unknown = || Problem::not_found("This team has no such monitor.");
        let id: MonitorId = id.parse().map_err(|_| unknown())?;
        for environment in ENVIRONMENTS {
            let found = monitors::get(&web.core, self.team_member.uncounted_caller(environment), id).await;
            match found.map_err(Error::into_fault) {
                Ok(monitor) => return Ok((monitor, self.team_member.admit(&web.core, environment).await?)),
                Err(Fault::NotFound { .. }) => {}
                Err(fault) => return Err(fault.into()),
            }
        }
        Err(unknown())
    }
}

impl Web {
    fn monitor_layout(&self, at: &TeamContext) -> Layout {
        self.team_layout(at, PAGE)
    }
}
