//! Reads one grab.

use grabd_domain::Fault;
use grabd_domain::credentials::Caller;
use grabd_domain::grabs::Grab;
use grabd_domain::ids::GrabId;

use crate::error::Error;
use crate::service::Core;

/// Returns a grab of the caller's team and environment.
///
/// # Errors
/// [`Fault::NotFound`] when the grab does not exist or belongs to another team; callers cannot tell which.
#[tracing::instrument(name = "grabs.get", skip_all)]
pub async fn get(core: &Core, caller: Caller, id: GrabId) -> Result<Grab, Error> {
    let found = core.store.grabs().find_grab(caller.team, caller.environment, id).await?;
    Ok(found.ok_or(Fault::NotFound { what: "grab" })?)
}
