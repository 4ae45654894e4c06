//! Compares the files of a run and its baseline, within limits of memory and time.

use std::time::Duration;

use grabd_domain::ids::RunId;
use grabd_domain::monitor::{FileResult, FileResults};
use grabd_store::Error;
use grabd_store::monitors::{ComparedFiles, ElementFiles, Files};

use super::elements;
use crate::grabs::file_pair::{PairLimits, PairResult, compare_pair};
use crate::service::Core;

/// The limits of a comparison. Each byte needs memory for lines or members, and where they are: texts of very short lines most.
const LIMITS: PairLimits = PairLimits { time: Duration::from_secs(3), memory_factor: 48 };

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
    match compare_pair(core, &before, &after, LIMITS, changes).await {
        Ok(PairResult::Compared(changes)) => FileResult::Compared(changes),
        Ok(PairResult::NoEarlier) => FileResult::NoBaseline,
        Ok(PairResult::NoLater | PairResult::Unreadable) => FileResult::Unread,
        Ok(PairResult::TooSlow) => {
            tracing::warn!(run.id = %run, file = before.kind.as_str(), "the files of a run were not compared in time");
            FileResult::Unread
        }
        Err(error) => {
            tracing::warn!(run.id = %run, file = before.kind.as_str(), %error, "the files of a run were not compared");
            FileResult::Unread
        }
    }
}
