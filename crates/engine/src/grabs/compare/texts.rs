//! Compares the texts of two grabs that exist, for people who look at both. Nothing is stored.
//!
//! The turns are those of comparisons of images: one at a time, and a payer has at most one in the queue.

use std::time::Duration;

use grabd_domain::capture::FileKind;
use grabd_domain::grabs::{Grab, GrabFile};
use grabd_domain::monitor::{TextCompare, TextDiff};
use tokio::time::timeout;

use super::existing::{TURN_LIMIT, image_of};
use crate::billing::find_payer;
use crate::error::Error;
use crate::grabs::file_pair::{PairLimits, PairResult, compare_pair};
use crate::service::Core;

/// The largest texts that are compared, both together, in bytes.
const MAX_BYTES: u64 = 2 << 20;
/// The limits of a comparison. Each byte needs memory for lines, and for where equal ones are.
const LIMITS: PairLimits = PairLimits { time: Duration::from_secs(3), memory_factor: 48 };

/// The texts of two grabs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextComparison {
    /// Neither of them has a text.
    None,
    /// Only the earlier one has a text.
    OnlyEarlier,
    /// Only the later one has a text.
    OnlyLater,
    /// The texts are too large to be compared while somebody waits.
    TooLarge,
    /// It was not the turn of this payer in time, or the comparison took too long.
    Busy,
    /// The texts side by side.
    Compared(TextDiff),
}

/// Compares the files `text` of two grabs of one team, as `compare` says. Both were read for that team.
///
/// # Errors
/// When the database or the storage cannot be read.
#[tracing::instrument(name = "grabs.compare_texts", skip_all)]
pub async fn compare_texts(
    core: &Core,
    compare: TextCompare,
    earlier: &Grab,
    later: &Grab,
) -> Result<TextComparison, Error> {
    if earlier.team != later.team {
        return Ok(TextComparison::None);
    }
    let (before, after) = match (text_of(earlier), text_of(later)) {
        (Some(before), Some(after)) => (before, after),
        (Some(_), None) => return Ok(TextComparison::OnlyEarlier),
        (None, Some(_)) => return Ok(TextComparison::OnlyLater),
        (None, None) => return Ok(TextComparison::None),
    };
    if before.bytes.saturating_add(after.bytes) > MAX_BYTES {
        return Ok(TextComparison::TooLarge);
    }
    if earlier.id == later.id {
        return Ok(TextComparison::Compared(TextDiff::default()));
    }
    let payer = find_payer(core, later.team).await?;
    let Ok(_turn) = timeout(TURN_LIMIT, core.grabs.comparisons.turns.take(&payer.id)).await else {
        return Ok(TextComparison::Busy);
    };
    let diff = move |before: &str, after: &str, is_stopped: &dyn Fn() -> bool| compare.diff(before, after, is_stopped);
    Ok(match compare_pair(core, before, after, LIMITS, diff).await? {
        PairResult::Compared(diff) => TextComparison::Compared(diff),
        PairResult::NoEarlier => TextComparison::OnlyLater,
        PairResult::NoLater => TextComparison::OnlyEarlier,
        PairResult::Unreadable | PairResult::TooSlow => TextComparison::Busy,
    })
}

/// The text beside the image of a grab.
fn text_of(grab: &Grab) -> Option<&GrabFile> {
    let (_, metadata) = image_of(grab)?;
    metadata.files.iter().find(|file| file.kind == FileKind::Text)
}
