//! Compares the files of a run and its baseline, within limits of memory and time.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use grabd_domain::grabs::GrabFile;
use grabd_domain::ids::RunId;
use grabd_domain::monitor::{FileResult, FileResults};
use grabd_images::LocalCopy;
use grabd_store::Error;
use grabd_store::monitors::{ComparedFiles, ElementFiles, Files};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::elements;
use crate::grabs::Image;
use crate::service::Core;

/// Time limit of loading and comparing two files.
const LIMIT: Duration = Duration::from_secs(3);
/// Memory for each byte of a file: its lines or members, and where they are.
const MEMORY_FACTOR: u64 = 24;

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

/// Compares the files of a run whose grab has ended. There are no results for what the monitor does not compare, nor without a
/// baseline. A failure is logged, and is no change of the page.
///
/// # Errors
/// Errors of the database as a whole.
pub(super) async fn compare(core: &Core, run: RunId) -> Result<FileResults, Error> {
    let found = core.store.monitors().files_of(run, core.clock.now()).await?;
    let Some(ComparedFiles { texts, elements }) = found else { return Ok(FileResults::default()) };
    let texts = match texts {
        Some((compare, files)) => {
            let changes = move |before: &str, after: &str, is_stopped: &dyn Fn() -> bool| {
                compare.changes(before, after, is_stopped)
            };
            Some(compare_within(core, run, files, changes).await)
        }
        None => None,
    };
    let elements = match elements {
        Some(ElementFiles { files, scale_hundredths }) => {
            let changes = move |before: &str, after: &str, is_stopped: &dyn Fn() -> bool| {
                elements::changes(before, after, scale_hundredths, is_stopped)
            };
            Some(compare_within(core, run, files, changes).await)
        }
        None => None,
    };
    Ok(FileResults { texts, elements })
}

/// Compares two files within the limit of time. `changes` returns `None` if it was stopped, or if a file cannot be parsed.
async fn compare_within<T: Send + 'static>(
    core: &Core,
    run: RunId,
    Files { before, after }: Files,
    changes: impl FnOnce(&str, &str, &dyn Fn() -> bool) -> Option<Vec<T>> + Send + 'static,
) -> FileResult<T> {
    let Some(before) = before else { return FileResult::NoBaseline };
    let Some(after) = after else { return FileResult::Unread };
    // The work ends soon after the limit.
    let stop = CancellationToken::new();
    let _stop = stop.clone().drop_guard();
    match timeout(LIMIT, compare_files(core, &before, &after, changes, stop)).await {
        Ok(Ok(result)) => result,
        Ok(Err(error)) => {
            tracing::warn!(run.id = %run, file = before.kind.as_str(), %error, "the files of a run were not compared");
            FileResult::Unread
        }
        Err(_) => {
            tracing::warn!(run.id = %run, file = before.kind.as_str(), "the files of a run were not compared in time");
            FileResult::Unread
        }
    }
}

async fn compare_files<T: Send + 'static>(
    core: &Core,
    before: &GrabFile,
    after: &GrabFile,
    changes: impl FnOnce(&str, &str, &dyn Fn() -> bool) -> Option<Vec<T>> + Send + 'static,
    stop: CancellationToken,
) -> Result<FileResult<T>, crate::Error> {
    let needed = before.bytes.saturating_add(after.bytes).saturating_mul(MEMORY_FACTOR);
    let memory = core.grabs.memory.reserve_at_most(needed, LIMIT).await.map_err(crate::Error::other)?;
    let Some(before) = find(core, before).await? else { return Ok(FileResult::NoBaseline) };
    let Some(after) = find(core, after).await? else { return Ok(FileResult::Unread) };
    let work = move || -> io::Result<Option<Vec<T>>> {
        let _memory = memory;
        Ok(changes(&before.read()?, &after.read()?, &|| stop.is_cancelled()))
    };
    let compared = core.tasks.spawn_blocking(work).await.map_err(crate::Error::other)?;
    let changes = compared.map_err(crate::Error::other)?;
    Ok(changes.map_or(FileResult::Unread, FileResult::Compared))
}

/// A file. `None` if it was deleted.
async fn find(core: &Core, file: &GrabFile) -> Result<Option<Content>, crate::Error> {
    let Some(found) = core.file(&file.key).await.map_err(crate::Error::other)? else { return Ok(None) };
    match found.content {
        Image::Stored(stored) => {
            let copy = stored.local_copy().await.map_err(crate::Error::other)?;
            Ok(copy.map(Content::Stored))
        }
        Image::Placeholder(bytes) => Ok(Some(Content::Made(bytes))),
    }
}
