//! Reads one grab.

use grabd_domain::Fault;
use grabd_domain::credentials::Caller;
use grabd_domain::grabs::Grab;
use grabd_domain::ids::GrabId;

use crate::core::{Core, inside};

/// The grab, if it is the caller's.
///
/// # Errors
/// [`Fault::NotFound`] for an id that is unknown or somebody else's: the two cannot be told apart.
pub async fn get(core: &Core, caller: Caller, id: GrabId) -> Result<Grab, Fault> {
    core.store
        .find_grab(caller.team, caller.environment, id)
        .await
        .map_err(inside("grabs.get"))?
        .ok_or(Fault::NotFound { what: "grab" })
}
