//! Thumbnails of images for list pages: made at the first request, and stored beside the image.
//!
//! Thumbnails are made one at a time, and a payer has at most one in the queue for that. The images of one payer,
//! which may be slow to decode, therefore delay another payer by one thumbnail at most.

use std::time::Duration;

use bytes::Bytes;
use grabd_domain::Fault;
use grabd_domain::credentials::Caller;
use grabd_domain::grabs::{Grab, ImageKey, State};
use grabd_domain::ids::{GrabId, PayerId, TeamId};
use grabd_limiters::{Turn, Turns};
use grabd_pixels::{Part, THUMBNAIL_BYTES, shrink};
pub use grabd_pixels::{THUMBNAIL_HEIGHT, THUMBNAIL_WIDTH};
use tokio::time::timeout;

use super::derived::{self, Error, Picture, Source};
use super::{get, loaded};
use crate::billing::find_payer;
use crate::cache::Cache;
use crate::error::IMAGES_BUSY;
use crate::service::Core;

/// The fault of a grab that has no thumbnail.
const NONE: Fault = Fault::NotFound { what: "picture" };
/// Cache size: more than a thousand thumbnails.
const CACHE_BYTES: usize = 24 << 20;
/// Thumbnails made at the same time. They must not take the processors from captures.
const MAX_CONCURRENT: usize = 1;
/// How long a request may wait for its turn and for memory.
const WAIT_LIMIT: Duration = Duration::from_secs(20);

/// The cache of thumbnails, and the turns to make them.
pub(crate) struct Thumbnails {
    /// The latest ones. It also has those of placeholders, which have no file that they could be stored beside.
    cache: Cache<ImageKey, Bytes>,
    turns: Turns<PayerId>,
}

impl Default for Thumbnails {
    fn default() -> Self {
        Self { cache: Cache::new(CACHE_BYTES), turns: Turns::new(MAX_CONCURRENT, 1) }
    }
}

impl Thumbnails {
    /// Removes the thumbnail of a deleted image from memory. The storage deletes its file with the image.
    pub(crate) fn remove(&self, key: &ImageKey) {
        self.cache.remove(key);
    }

    /// A thumbnail that was made before.
    async fn find(&self, core: &Core, key: &ImageKey) -> Result<Option<Bytes>, Error> {
        if let Some(thumbnail) = self.cache.get(key) {
            return Ok(Some(thumbnail));
        }
        let stored = core.grabs.images.thumbnail(key).await?;
        if let Some(thumbnail) = &stored {
            self.cache.put(key.clone(), thumbnail);
        }
        Ok(stored)
    }
}

/// The grab's image as a JPEG thumbnail of at most [`THUMBNAIL_WIDTH`] by [`THUMBNAIL_HEIGHT`]. Of a long page it shows the
/// top, of an element or a rectangle all of it.
///
/// # Errors
/// [`Fault::NotFound`] when the caller has no such grab, or it has no image. [`Fault::ImagesBusy`] when it was not this
/// payer's turn in time.
#[tracing::instrument(name = "grabs.thumbnail", skip_all)]
pub async fn thumbnail(core: &Core, caller: Caller, id: GrabId) -> Result<Bytes, crate::Error> {
    let Grab { spec, state, .. } = get(core, caller, id).await?;
    let State::Done { image: Some(key), .. } = state else { return Err(NONE.into()) };
    let part = if spec.is_part() { Part::Whole } else { Part::Top };
    find_or_make(core, caller.team, key, part).await
}

/// The error of a request for a thumbnail that could not be made.
fn to_error(error: Error) -> crate::Error {
    if matches!(error, Error::Deleted | Error::TooLarge | Error::Undecodable(image::ImageError::Limits(_))) {
        NONE.into()
    } else if error.is_busy() {
        IMAGES_BUSY.into()
    } else {
        crate::Error::other(error)
    }
}

async fn find_or_make(core: &Core, team: TeamId, key: ImageKey, part: Part) -> Result<Bytes, crate::Error> {
    let thumbnails = &core.grabs.thumbnails;
    if let Some(thumbnail) = thumbnails.find(core, &key).await.map_err(to_error)? {
        return Ok(thumbnail);
    }
    let payer = find_payer(core, team).await?;
    let turn = timeout(WAIT_LIMIT, thumbnails.turns.take(&payer.id)).await.map_err(|_| IMAGES_BUSY)?;
    // An image belongs to one team, so a concurrent request for the same image waited for this one.
    if let Some(thumbnail) = thumbnails.find(core, &key).await.map_err(to_error)? {
        return Ok(thumbnail);
    }
    // A task that owns the turn, so that the work is not lost when the caller disconnects.
    let task = core.clone();
    let made = core.spawn(async move { make(&task, key, part, turn).await }).await;
    made.map_err(Error::from).and_then(|made| made).map_err(to_error)
}

/// Makes and stores a thumbnail.
async fn make(core: &Core, key: ImageKey, part: Part, turn: Turn) -> Result<Bytes, Error> {
    let picture = loaded::load(core, &key).await?;
    let is_stored = matches!(picture.source, Source::File(_));
    let look = move || {
        let (_, bytes) = picture.view().look()?;
        Ok((bytes.saturating_add(THUMBNAIL_BYTES), picture))
    };
    let work = move |picture: Picture, _: &_| Ok(shrink(picture.view(), part)?);
    let thumbnail = Bytes::from(derived::run(&core.tasks, &core.grabs.memory, WAIT_LIMIT, look, work).await?);
    if is_stored && let Err(error) = core.grabs.images.put_thumbnail(&key, thumbnail.clone()).await {
        // It is made again when it has left the cache.
        tracing::warn!(%error, "a thumbnail could not be stored");
    }
    core.grabs.thumbnails.cache.put(key, &thumbnail);
    drop(turn);
    Ok(thumbnail)
}
