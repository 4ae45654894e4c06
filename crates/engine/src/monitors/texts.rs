//! Compares the texts of a run and its baseline, within limits of memory and time.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use grabd_domain::grabs::GrabFile;
use grabd_domain::ids::RunId;
use grabd_domain::monitor::{TextChange, TextCompare, TextResult};
use grabd_images::LocalCopy;
use grabd_store::Error;
use grabd_store::monitors::ComparedTexts;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::grabs::Image;
use crate::service::Core;

/// Time limit of loading and comparing both texts.
const LIMIT: Duration = Duration::from_secs(3);
/// Memory for each byte of a text: its lines, and where they are.
const MEMORY_FACTOR: u64 = 24;

/// A text that was found.
enum Text {
    Stored(LocalCopy),
    /// That of a placeholder.
    Made(Bytes),
}

impl Text {
    fn read(self) -> io::Result<String> {
        let bytes = match self {
            Self::Stored(copy) => Bytes::from(std::fs::read(copy.path())?),
            Self::Made(bytes) => bytes,
        };
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Compares the texts of a run whose grab has ended. `None` if the monitor compares none, or if there is no baseline. A failure
/// is logged, and is no change of the page.
///
/// # Errors
/// Errors of the database as a whole.
pub(super) async fn compare(core: &Core, run: RunId) -> Result<Option<TextResult>, Error> {
    let found = core.store.monitors().texts_of(run, core.clock.now()).await?;
    let Some(ComparedTexts { compare, before, after }) = found else { return Ok(None) };
    let Some(before) = before else { return Ok(Some(TextResult::NoBaseline)) };
    let Some(after) = after else { return Ok(Some(TextResult::Unread)) };
    // The work ends soon after the limit.
    let stop = CancellationToken::new();
    let _stop = stop.clone().drop_guard();
    let result = match timeout(LIMIT, compare_files(core, compare, &before, &after, stop)).await {
        Ok(Ok(result)) => result,
        Ok(Err(error)) => {
            tracing::warn!(run.id = %run, %error, "the texts of a run were not compared");
            TextResult::Unread
        }
        Err(_) => {
            tracing::warn!(run.id = %run, "the texts of a run were not compared in time");
            TextResult::Unread
        }
    };
    Ok(Some(result))
}

async fn compare_files(
    core: &Core,
    compare: TextCompare,
    before: &GrabFile,
    after: &GrabFile,
    stop: CancellationToken,
) -> Result<TextResult, crate::Error> {
    let needed = before.bytes.saturating_add(after.bytes).saturating_mul(MEMORY_FACTOR);
    let memory = core.grabs.memory.reserve_at_most(needed, LIMIT).await.map_err(crate::Error::other)?;
    let Some(before) = find(core, before).await? else { return Ok(TextResult::NoBaseline) };
    let Some(after) = find(core, after).await? else { return Ok(TextResult::Unread) };
    let work = move || -> io::Result<Option<Vec<TextChange>>> {
        let _memory = memory;
        Ok(compare.changes(&before.read()?, &after.read()?, &|| stop.is_cancelled()))
    };
    let compared = core.tasks.spawn_blocking(work).await.map_err(crate::Error::other)?;
    let changes = compared.map_err(crate::Error::other)?;
    Ok(changes.map_or(TextResult::Unread, TextResult::Compared))
}

/// A text. `None` if it was deleted.
async fn find(core: &Core, file: &GrabFile) -> Result<Option<Text>, crate::Error> {
    let Some(found) = core.file(&file.key).await.map_err(crate::Error::other)? else { return Ok(None) };
    match found.content {
        Image::Stored(stored) => {
            let copy = stored.local_copy().await.map_err(crate::Error::other)?;
            Ok(copy.map(Text::Stored))
        }
        Image::Placeholder(bytes) => Ok(Some(Text::Made(bytes))),
    }
}
