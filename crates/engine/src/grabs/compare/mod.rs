//! Compares the image of a grab with that of an earlier one: `compare_to`.
//!
//! `measure` compares them within limits, `placeholders` with test keys, `existing` those of two grabs that exist, and `texts` the
//! texts of these.

pub(crate) mod comparisons;
pub(crate) mod existing;
mod measure;
pub(crate) mod placeholders;
pub(crate) mod texts;

use std::time::Duration;

use grabd_domain::Fault;
use grabd_domain::capture::{AttachmentName, CaptureSpec, FileKind};
use grabd_domain::credentials::Caller;
use grabd_domain::faults::Field;
use grabd_domain::grabs::{Difference, Failure, FileKey, Grab, GrabFile, ImageKey, RenderMetadata, State};
use grabd_domain::ids::{GrabId, KeyId};
use grabd_pixels::Tolerance;
use tokio::time::timeout;

use self::measure::{Changed, measure};
use super::derived::{Derived, Error, Picture, Source};
use super::not_completed::NotCompleted;
use crate::random;
use crate::service::Core;

/// Time limit of loading both images from an object store.
const LOAD_LIMIT: Duration = Duration::from_secs(5);

/// Checks that the earlier grab of a request has an image of the same team and environment, and of the same API key if one
/// is given. Whether another team has such
/// a grab cannot be told from the answer.
///
/// # Errors
/// [`Fault::BadRequest`] for `compare_to`.
pub(super) async fn check(
    core: &Core,
    caller: Caller,
    spec: &CaptureSpec,
    only_of: Option<KeyId>,
) -> Result<(), crate::Error> {
    let Some(id) = spec.compare_to else { return Ok(()) };
    let found = core.store.grabs().find_grab(caller.team, caller.environment, id).await;
    let refuse = |about: &str, allowed: &str| {
        Err(Fault::BadRequest(Field::new("compare_to", &format!("\"{id}\"{about}"), allowed)).into())
    };
    let Some(grab) = found? else {
        return refuse("", "the id of a grab of the same team and environment");
    };
    if let Some(key) = only_of
        && !core.store.grabs().is_grab_of_key(id, key).await?
    {
        return refuse("", "the id of a grab that the same API key has created, since it lacks the scope `read`");
    }
    match &grab.state {
        State::Done { image: Some(_), .. } => Ok(()),
        State::Done { image: None, .. } => refuse(", whose image was deleted", "the id of a grab that has an image"),
        State::Pending | State::Processing | State::Failed { .. } => {
            refuse(&format!(", which is {}", grab.status().as_str()), "the id of a grab that is done")
        }
    }
}

/// Compares a stored image with that of an earlier grab, stores the image of the difference beside it, and adds both to
/// the metadata. Images without a difference that counts have no image of it. Storing ends within the limit.
///
/// # Errors
/// See [`NotCompleted`]. A file that is left behind is deleted with the image.
pub(super) async fn compare(
    core: &Core,
    (earlier, tolerance): (GrabId, &Tolerance),
    key: &ImageKey,
    metadata: &mut RenderMetadata,
    limit: Duration,
) -> Result<(), NotCompleted> {
    let not_completed = |error: Error| error.not_completed(Derived::Difference);
    let found = core.store.grabs().find_grabs(&[earlier]).await.map_err(NotCompleted::Database)?;
    let State::Done { image: Some(earlier_key), metadata: earlier_metadata, .. } =
        image_of(found).map_err(not_completed)?.state
    else {
        return Err(not_completed(Error::Deleted));
    };
    if metadata.image_sha256.is_some() && metadata.image_sha256 == earlier_metadata.image_sha256 {
        add(metadata, earlier, Changed { ppm: 0, regions: Vec::new() }, 0);
        return Ok(());
    }
    let images = &core.grabs.images;
    let picture = async |key: &ImageKey| {
        let source = Source::File(images.image(key).local_copy().await?.ok_or(Error::Deleted)?);
        Ok::<_, Error>(Picture { source, format: key.format() })
    };
    let load = async { Ok::<_, Error>((picture(&earlier_key).await?, picture(key).await?)) };
    let (earlier_picture, later) =
        timeout(LOAD_LIMIT, load).await.map_err(|_| Error::TooSlow).and_then(|loaded| loaded).map_err(not_completed)?;
    let upload =
        images.begin_file(key, AttachmentName::Also(FileKind::Difference)).await.map_err(NotCompleted::NotStored)?;
    let (changed, upload) =
        measure(&core.tasks, &core.grabs.memory, (earlier_picture, later), tolerance.clone(), upload)
            .await
            .map_err(not_completed)?;
    let bytes = upload.bytes();
    if changed.ppm > 0 {
        upload.finish(limit).await.map_err(NotCompleted::NotStored)?;
    }
    add(metadata, earlier, changed, bytes);
    Ok(())
}

/// Compares a placeholder with that of an earlier grab, and adds the difference to its metadata.
///
/// # Errors
/// The failure of the grab.
pub(super) async fn compare_placeholder(
    core: &Core,
    spec: &CaptureSpec,
    metadata: &mut RenderMetadata,
) -> Result<(), Failure> {
    let failure = |error: Error| error.to_failure(Derived::Difference);
    let Some(earlier) = spec.compare_to else { return Ok(()) };
    let found = core.store.grabs().find_grabs(&[earlier]).await.map_err(|error| failure(Error::from(error)))?;
    let grab = image_of(found).map_err(failure)?;
    let measured = core.grabs.differences.measure(&core.tasks, &grab.spec, spec).await;
    let (changed, bytes) = measured.map_err(failure)?;
    add(metadata, earlier, changed, bytes);
    Ok(())
}

/// The earlier grab, if its image still exists.
fn image_of(found: Vec<Grab>) -> Result<Grab, Error> {
    let has_image = |grab: &Grab| matches!(grab.state, State::Done { image: Some(_), .. });
    found.into_iter().find(has_image).ok_or(Error::Deleted)
}

fn add(metadata: &mut RenderMetadata, compared_to: GrabId, changed: Changed, bytes: u64) {
    let Changed { ppm, regions } = changed;
    if ppm > 0 {
        metadata.files.push(GrabFile { kind: FileKind::Difference, key: FileKey::new(random::random()), bytes });
    }
    metadata.difference = Some(Difference { compared_to, changed_ppm: ppm, regions });
}
