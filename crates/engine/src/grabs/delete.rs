//! Deletes the image of a grab. The grab itself is kept, since it may have been charged.

use grabd_domain::Fault;
use grabd_domain::credentials::Caller;
use grabd_domain::grabs::{ImageKey, State};
use grabd_domain::ids::GrabId;

use super::get;
use crate::error::Error;
use crate::service::Core;

/// Makes the image unreachable and deletes its file. Idempotent.
///
/// # Errors
/// [`Fault::NotFound`] when the grab does not exist or belongs to another team; callers cannot tell which.
#[tracing::instrument(name = "grabs.delete", skip_all)]
pub async fn delete(core: &Core, caller: Caller, id: GrabId) -> Result<(), Error> {
    let image = match get(core, caller, id).await?.state {
        State::Done { image, .. } => image,
        State::Pending | State::Processing | State::Failed { .. } => None,
    };
    let exists = core.store.grabs().delete_grab(caller.team, caller.environment, id, core.clock.now()).await?;
    if !exists {
        return Err(Fault::NotFound { what: "grab" }.into());
    }
    tracing::info!(grab.id = %id, team.id = %caller.team, "a grab's image was deleted on request");
    if let Some(key) = image {
        core.grabs.thumbnails.remove(&key);
        remove(core, &key).await;
    }
    core.queue.watchers.publish(get(core, caller, id).await?);
    Ok(())
}

/// Deletes the image file. The transaction has listed the image for deletion, so the sweep handles failures here and
/// the image of a grab that ended in between.
async fn remove(core: &Core, key: &ImageKey) {
    match core.grabs.images.delete(key).await {
        Ok(()) => {
            if let Err(error) = core.store.grabs().unschedule_deletion(key).await {
                tracing::warn!(%error, "a deleted image is still listed for deletion; the sweep will remove it");
            }
        }
        Err(error) => tracing::warn!(%error, "an image could not be deleted; the sweep will try again"),
    }
}
