//! A team's captures: one file per page. `view` prepares a grab for display, and `events` streams changes to open
//! pages.

pub(crate) mod capture;
pub(crate) mod card;
pub(crate) mod compare;
pub(crate) mod delete;
pub(crate) mod delete_selected;
pub(crate) mod download;
pub(crate) mod events;
pub(crate) mod first_steps;
pub(crate) mod fresh;
pub(crate) mod home;
pub(crate) mod list;
mod menus;
mod no_credits;
pub(crate) mod options;
mod query;
mod result;
pub(crate) mod retake;
mod retake_form;
mod selection;
pub(crate) mod show;
pub(crate) mod snippets;
mod stages;
pub(crate) mod thumbnail;
pub(crate) mod unavailable;
pub(crate) mod view;

use grabd_domain::Fault;
use grabd_domain::credentials::Caller;
use grabd_domain::grabs::Grab;
use grabd_domain::ids::GrabId;
use grabd_engine::{Error, grabs};

use crate::environments::ENVIRONMENTS;
use crate::problem::Problem;
use crate::state::Web;
use crate::team::TeamContext;

/// Redirects to the gallery of the user's first team.
pub(crate) const PATH: &str = "/grabs";
/// The form for a new capture.
pub(crate) const CAPTURE: &str = "/teams/{team}/capture";
/// The code for the options of that form.
pub(crate) const CODE: &str = "/teams/{team}/capture/code";
/// Hides the first steps of a team.
pub(crate) const FIRST_STEPS: &str = "/teams/{team}/first-steps";
/// The gallery.
pub(crate) const LIST: &str = "/teams/{team}/grabs";
/// The event stream of the gallery.
pub(crate) const LIST_EVENTS: &str = "/teams/{team}/grabs/events";
/// The grabs that were made since the gallery was opened.
pub(crate) const NEW: &str = "/teams/{team}/grabs/new";
/// The images that are selected in the gallery, as an archive.
pub(crate) const DOWNLOAD: &str = "/teams/{team}/grabs/download";
/// Compares two grabs of the gallery.
pub(crate) const COMPARE: &str = "/teams/{team}/grabs/compare";
/// Deletes the images that are selected in the gallery.
pub(crate) const DELETE_SELECTED: &str = "/teams/{team}/grabs/delete";
/// One grab.
pub(crate) const ONE: &str = "/teams/{team}/grabs/{grab}";
/// The event stream of a grab.
pub(crate) const EVENTS: &str = "/teams/{team}/grabs/{grab}/events";
/// The query parameter of [`LIST_EVENTS`] with the id of a grab.
pub(crate) const WATCHED: &str = "grab";
/// Maximum number of grabs that one stream follows.
const MAX_WATCHED: usize = 32;
/// The thumbnail of a grab's image.
pub(crate) const THUMBNAIL: &str = "/teams/{team}/grabs/{grab}/thumbnail";
/// Captures the page of a grab again, and compares both images.
pub(crate) const AGAIN: &str = "/teams/{team}/grabs/{grab}/retake";
/// Deletes the image of a grab.
pub(crate) const DELETE: &str = "/teams/{team}/grabs/{grab}/delete";

impl TeamContext {
    /// The path of a grab's page, or of the page `page` below it.
    fn grab_path(&self, grab: GrabId, page: &str) -> String {
        let slash = if page.is_empty() { "" } else { "/" };
        self.path(&format!("grabs/{grab}{slash}{page}"))
    }

    /// Finds the team's grab in either environment, and the caller for that environment. Does not count against the
    /// rate limit.
    ///
    /// # Errors
    /// When the team has no such grab.
    async fn find_grab(&self, web: &Web, id: &str) -> Result<(Grab, Caller), Problem> {
        let unknown = || Problem::not_found("This team has no such capture.");
        let id: GrabId = id.parse().map_err(|_| unknown())?;
        for environment in ENVIRONMENTS {
            let caller = self.team_member.uncounted_caller(environment);
            match grabs::get(&web.core, caller, id).await.map_err(Error::into_fault) {
                Ok(grab) => return Ok((grab, caller)),
                Err(Fault::NotFound { .. }) => {}
                Err(fault) => return Err(fault.into()),
            }
        }
        Err(unknown())
    }

    /// The same, counted against the rate limit of the grab's environment.
    ///
    /// # Errors
    /// When the team has no such grab, or has reached its rate limit.
    async fn find_grab_counted(&self, web: &Web, id: &str) -> Result<(Grab, Caller), Problem> {
        let (grab, _) = self.find_grab(web, id).await?;
        let caller = self.team_member.admit(&web.core, grab.environment).await?;
        Ok((grab, caller))
    }
}
