//! Who created a grab.

use grabd_domain::credentials::Caller;
use grabd_domain::ids::GrabId;
use grabd_store::grabs::GrabCreator;

use crate::error::Error;
use crate::service::Core;

/// Who created a grab of the caller's team, as members of the team may see it.
///
/// # Errors
/// When the database fails.
#[tracing::instrument(name = "grabs.creator", skip_all)]
pub async fn creator(core: &Core, caller: Caller, grab: GrabId) -> Result<GrabCreator, Error> {
    Ok(core.store.grabs().find_creator(caller.team, grab).await?)
}
