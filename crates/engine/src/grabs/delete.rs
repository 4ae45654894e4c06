//! Deletes the image of one grab. The grab stays: it was asked for, and perhaps paid for.

use grabd_domain::Fault;
use grabd_domain::credentials::Caller;
use grabd_domain::grabs::{ImageKey, State};
use grabd_domain::ids::GrabId;

use super::get;
use crate::core::{Core, inside};

/// Makes the image unreachable and removes its file. Repeating it is harmless.
///
/// # Errors
/// [`Fault::NotFound`] for an id that is unknown or somebody else's: the two cannot be told apart.
pub async fn delete(core: &Core, caller: Caller, id: GrabId) -> Result<(), Fault> {
    let shown = match get(core, caller, id).await?.state {
        State::Done { image, .. } => image,
        State::Pending | State::Processing | State::Failed { .. } => None,
    };
    let is_there = core
        .store
        .delete_grab(caller.team, caller.environment, id, core.clock.now())
        .await
        .map_err(inside("grabs.delete"))?;
    if !is_there {
        return Err(Fault::NotFound { what: "grab" });
    }
    tracing::info!(grab.id = %id, team.id = %caller.team, "a grab's image was deleted on request");
    if let Some(key) = shown {
        core.thumbnails.forget(&key);
        remove(core, &key).await;
    }
    core.watchers.publish(get(core, caller, id).await?);
    Ok(())
}

/// The transaction has put the image on the list of those to be removed, so what fails here, and the image of a grab that
/// ended in between, is left to the sweep.
async fn remove(core: &Core, key: &ImageKey) {
    match core.images.delete(key).await {
        Ok(()) => {
            if let Err(error) = core.store.forget_image(key).await {
                tracing::warn!(%error, "a deleted image is still on the list; the sweep takes it off");
            }
        }
        Err(error) => tracing::warn!(%error, "an image could not be deleted; the sweep tries again"),
    }
}
