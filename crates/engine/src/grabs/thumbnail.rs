//! Thumbnails of images for list pages: made at the first request, and stored beside the image.
//!
//! Thumbnails are made one at a time, and an account has at most one in the queue for that. The images of one account,
//! which may be slow to decode, therefore delay another account by one thumbnail at most.

use std::io::{BufReader, Cursor};
use std::time::Duration;

use bytes::Bytes;
use grabd_domain::Fault;
use grabd_domain::capture::Format;
use grabd_domain::credentials::Caller;
use grabd_domain::grabs::{Grab, ImageKey, State};
use grabd_domain::ids::{AccountId, GrabId, TeamId};
use grabd_limiters::{Turn, Turns};
use grabd_memory::{MemoryError, Reservation};
use grabd_store::images::LocalCopy;
use tokio::time::timeout;

use self::shrink::{Part, shrink};
use super::get;
use super::image::{Image, ImageError};
use super::pixels::dimensions;
use crate::billing::find_account;
use crate::cache::Cache;
use crate::core::Core;
use crate::faults::{IMAGES_BUSY, internal_error};

mod shrink;

pub use shrink::{THUMBNAIL_HEIGHT, THUMBNAIL_WIDTH};

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
    turns: Turns<AccountId>,
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

/// Why there is no thumbnail.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("the image was deleted")]
    Deleted,
    #[error("other images took the memory or the time")]
    Busy,
    #[error("the image is too large for a thumbnail")]
    TooLarge,
    #[error(transparent)]
    Image(#[from] ImageError),
    #[error(transparent)]
    Storage(#[from] grabd_store::images::Error),
    #[error("the image cannot be decoded")]
    Undecodable(#[from] image::ImageError),
    #[error("the file cannot be read")]
    File(#[from] std::io::Error),
    #[error("the task ended early")]
    Task(#[from] tokio::task::JoinError),
    #[error("the account cannot be read")]
    Account(#[source] Fault),
}

impl From<MemoryError> for Error {
    fn from(error: MemoryError) -> Self {
        match error {
            MemoryError::Busy => Self::Busy,
            MemoryError::TooLarge => Self::TooLarge,
        }
    }
}

/// The grab's image as a JPEG thumbnail of at most [`THUMBNAIL_WIDTH`] by [`THUMBNAIL_HEIGHT`]. Of a long page it shows the
/// top, of an element or a rectangle all of it.
///
/// # Errors
/// [`Fault::NotFound`] when the caller has no such grab, or it has no image. [`Fault::ImagesBusy`] when it was not this
/// account's turn in time.
#[tracing::instrument(name = "grabs.thumbnail", skip_all)]
pub async fn thumbnail(core: &Core, caller: Caller, id: GrabId) -> Result<Bytes, Fault> {
    let none = Fault::NotFound { what: "picture" };
    let Grab { spec, state, .. } = get(core, caller, id).await?;
    let State::Done { image: Some(key), .. } = state else { return Err(none) };
    let part = if spec.is_part() { Part::Whole } else { Part::Top };
    match find_or_make(core, caller.team, key, part).await {
        Ok(thumbnail) => Ok(thumbnail),
        Err(Error::Deleted | Error::TooLarge | Error::Undecodable(image::ImageError::Limits(_))) => Err(none),
        Err(Error::Busy) => Err(IMAGES_BUSY),
        Err(Error::Image(error)) if error.is_busy() => Err(IMAGES_BUSY),
        Err(Error::Account(fault)) => Err(fault),
        Err(error) => Err(internal_error("grabs.thumbnail")(error)),
    }
}

async fn find_or_make(core: &Core, team: TeamId, key: ImageKey, part: Part) -> Result<Bytes, Error> {
    let thumbnails = &core.grabs.thumbnails;
    if let Some(thumbnail) = thumbnails.find(core, &key).await? {
        return Ok(thumbnail);
    }
    let account = find_account(core, team).await.map_err(Error::Account)?;
    let turn = timeout(WAIT_LIMIT, thumbnails.turns.take(&account.id)).await.map_err(|_| Error::Busy)?;
    // An image belongs to one team, so a concurrent request for the same image waited for this one.
    if let Some(thumbnail) = thumbnails.find(core, &key).await? {
        return Ok(thumbnail);
    }
    // A task that owns the turn, so that the work is not lost when the caller disconnects.
    let task = core.clone();
    core.spawn(async move { make(&task, key, part, turn).await }).await?
}

/// Makes and stores a thumbnail.
async fn make(core: &Core, key: ImageKey, part: Part, turn: Turn) -> Result<Bytes, Error> {
    let format = key.format();
    let image = core.image(&key).await?.ok_or(Error::Deleted)?;
    let source = match image {
        Image::Stored(file) => Source::File(file.local_copy().await?.ok_or(Error::Deleted)?),
        Image::Placeholder(bytes) => Source::Memory(bytes),
    };
    let is_stored = matches!(source, Source::File(_));
    let looked = core.tasks.spawn_blocking(move || {
        let (width, height, file_bytes) = source.size(format)?;
        Ok::<_, Error>((width, height, file_bytes, source))
    });
    let (width, height, file_bytes, source) = looked.await??;
    let needed = shrink::memory_bytes(width, height, format, file_bytes);
    let memory: Reservation = core.grabs.memory.reserve(needed, WAIT_LIMIT).await?;
    let shrunk = core.tasks.spawn_blocking(move || {
        let _memory = memory;
        match source {
            Source::File(file) => {
                Ok::<_, Error>(shrink(BufReader::new(std::fs::File::open(file.path())?), format, part)?)
            }
            Source::Memory(bytes) => Ok(shrink(Cursor::new(bytes), format, part)?),
        }
    });
    let thumbnail = Bytes::from(shrunk.await??);
    if is_stored && let Err(error) = core.grabs.images.put_thumbnail(&key, thumbnail.clone()).await {
        // It is made again when it has left the cache.
        tracing::warn!(%error, "a thumbnail could not be stored");
    }
    core.grabs.thumbnails.cache.put(key, &thumbnail);
    drop(turn);
    Ok(thumbnail)
}

/// Where an image is.
enum Source {
    File(LocalCopy),
    Memory(Bytes),
}

impl Source {
    /// Width and height in pixels, and the size of the file in bytes if it is not in memory already.
    fn size(&self, format: Format) -> Result<(u32, u32, u64), Error> {
        match self {
            Self::File(file) => {
                let file = std::fs::File::open(file.path())?;
                let bytes = file.metadata()?.len();
                let (width, height) = dimensions(BufReader::new(file), format)?;
                Ok((width, height, bytes))
            }
            Self::Memory(bytes) => {
                let (width, height) = dimensions(Cursor::new(bytes), format)?;
                Ok((width, height, 0))
            }
        }
    }
}
