//! A team's captures: one file per page. `view` says in people's words how a grab stands, and `events` tells the pages that
//! are open when that changes.

pub(crate) mod capture;
pub(crate) mod delete;
pub(crate) mod events;
pub(crate) mod home;
pub(crate) mod list;
pub(crate) mod options;
pub(crate) mod repeat;
pub(crate) mod show;
pub(crate) mod thumbnail;
pub(crate) mod view;

use grabd_domain::Fault;
use grabd_domain::credentials::{Caller, Environment};
use grabd_domain::grabs::Grab;
use grabd_domain::ids::GrabId;
use grabd_engine::grabs;

use crate::Web;
use crate::problem::Problem;
use crate::team::AtTeam;

/// The way to the gallery of one's first team.
pub(crate) const PATH: &str = "/grabs";
/// The form.
pub(crate) const CAPTURE: &str = "/teams/{team}/capture";
/// The gallery.
pub(crate) const LIST: &str = "/teams/{team}/grabs";
/// What happens to some grabs of it.
pub(crate) const LIST_EVENTS: &str = "/teams/{team}/grabs/events";
/// One grab.
pub(crate) const ONE: &str = "/teams/{team}/grabs/{grab}";
/// What happens to it.
pub(crate) const EVENTS: &str = "/teams/{team}/grabs/{grab}/events";
/// Its picture made small.
pub(crate) const THUMBNAIL: &str = "/teams/{team}/grabs/{grab}/thumbnail";
/// Whether to delete its picture.
pub(crate) const DELETE: &str = "/teams/{team}/grabs/{grab}/delete";

/// Both, in the order in which pages offer them.
pub(crate) const ENVIRONMENTS: [Environment; 2] = [Environment::Live, Environment::Test];

impl AtTeam {
    /// The path of a grab's page, or with `page` of one below it.
    fn grab_path(&self, grab: GrabId, page: &str) -> String {
        let slash = if page.is_empty() { "" } else { "/" };
        self.path(&format!("grabs/{grab}{slash}{page}"))
    }

    /// The team's grab, in whichever environment it is, and the caller whom it belongs to. Asks without counting.
    ///
    /// # Errors
    /// When the team has no such grab.
    async fn find_grab(&self, web: &Web, id: &str) -> Result<(Grab, Caller), Problem> {
        let unknown = || Problem::not_found("There is no such capture in this team.");
        let id: GrabId = id.parse().map_err(|_| unknown())?;
        for environment in ENVIRONMENTS {
            let caller = self.insider.watcher(environment);
            match grabs::get(&web.core, caller, id).await {
                Ok(grab) => return Ok((grab, caller)),
                Err(Fault::NotFound { .. }) => {}
                Err(fault) => return Err(fault.into()),
            }
        }
        Err(unknown())
    }

    /// The same for a page, which is counted as a request of the grab's environment.
    ///
    /// # Errors
    /// When the team has no such grab, or has asked too often.
    async fn enter_grab(&self, web: &Web, id: &str) -> Result<(Grab, Caller), Problem> {
        let (grab, _) = self.find_grab(web, id).await?;
        let caller = self.insider.enter(&web.core, grab.environment)?;
        Ok((grab, caller))
    }
}
