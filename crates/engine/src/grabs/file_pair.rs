//! Compares two files beside images, within limits of memory and time.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use grabd_domain::grabs::GrabFile;
use grabd_images::LocalCopy;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::image::Image;
use crate::error::Error;
use crate::service::Core;

/// What comparing two files may take.
#[derive(Clone, Copy)]
pub(crate) struct PairLimits {
    /// Time limit of loading and comparing both.
    pub(crate) time: Duration,
    /// Memory for each byte of the files.
    pub(crate) memory_factor: u64,
}

/// What became of the comparison of two files.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PairResult<T> {
    Compared(T),
    /// The earlier file was deleted.
    NoEarlier,
    /// The later file was deleted.
    NoLater,
    /// One of them is not of the kind that is compared.
    Unreadable,
    /// They were not compared within the limits.
    TooSlow,
}

/// A file that was found.
enum Content {
    Stored(LocalCopy),
    /// That of a placeholder.
    Made(Bytes),
}

impl Content {
    fn read(self) -> io::Result<String> {
        let bytes = match self {
            Self::Stored(copy) => Bytes::from(std::fs::read(copy.path())?),
            Self::Made(bytes) => bytes,
        };
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Compares two files with `changes`, which returns `None` if a file cannot be parsed, or if it was stopped: it can ask whether it
/// is to stop.
///
/// # Errors
/// When the database or the storage cannot be read.
pub(crate) async fn compare_pair<T: Send + 'static>(
    core: &Core,
    earlier: &GrabFile,
    later: &GrabFile,
    limits: PairLimits,
    changes: impl FnOnce(&str, &str, &dyn Fn() -> bool) -> Option<T> + Send + 'static,
) -> Result<PairResult<T>, Error> {
    // The work ends soon after the limit.
    let stop = CancellationToken::new();
    let _stop = stop.clone().drop_guard();
    match timeout(limits.time, load_and_compare(core, earlier, later, limits, changes, stop)).await {
        Ok(result) => result,
        Err(_) => Ok(PairResult::TooSlow),
    }
}

async fn load_and_compare<T: Send + 'static>(
    core: &Core,
    earlier: &GrabFile,
    later: &GrabFile,
    limits: PairLimits,
    changes: impl FnOnce(&str, &str, &dyn Fn() -> bool) -> Option<T> + Send + 'static,
    stop: CancellationToken,
) -> Result<PairResult<T>, Error> {
    let needed = earlier.bytes.saturating_add(later.bytes).saturating_mul(limits.memory_factor);
    let Ok(memory) = core.grabs.memory.reserve_at_most(needed, limits.time).await else {
        return Ok(PairResult::TooSlow);
    };
    let Some(earlier) = find(core, earlier).await? else { return Ok(PairResult::NoEarlier) };
    let Some(later) = find(core, later).await? else { return Ok(PairResult::NoLater) };
    let work = move || -> io::Result<Option<T>> {
        let _memory = memory;
        Ok(changes(&earlier.read()?, &later.read()?, &|| stop.is_cancelled()))
    };
    let compared = core.tasks.spawn_blocking(work).await.map_err(Error::other)?;
    let found = compared.map_err(Error::other)?;
    Ok(found.map_or(PairResult::Unreadable, PairResult::Compared))
}

/// A file. `None` if it was deleted.
async fn find(core: &Core, file: &GrabFile) -> Result<Option<Content>, Error> {
    let Some(found) = core.file(&file.key).await.map_err(Error::other)? else { return Ok(None) };
    match found.content {
        Image::Stored(stored) => {
            let copy = stored.local_copy().await.map_err(Error::other)?;
            Ok(copy.map(Content::Stored))
        }
        Image::Placeholder(bytes) => Ok(Some(Content::Made(bytes))),
    }
}
