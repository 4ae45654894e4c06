//! Monitors: captures that are repeated by a schedule, and compared with a baseline.
//!
//! `schedule` and `cron` say when a monitor runs, `quiet` when it sends no alerts, `compare` what counts as a change, `text`,
//! `text_changes` and `element_changes` what that is for texts and elements, and `decision` what follows from a run. `text_diff`,
//! `align` and `word_changes` prepare two texts for people who look at both. `request`, `batch` and `compare_request` parse what
//! callers send, and `record` has the monitor and its runs, which end with an `outcome`.

mod align;
mod batch;
mod compare;
mod compare_request;
mod cron;
mod decision;
mod element_changes;
mod file_result;
mod outcome;
mod quiet;
mod record;
mod request;
mod schedule;
mod text;
mod text_changes;
mod text_diff;
mod word_changes;

pub use self::batch::{MAX_BATCH, MonitorBatchRequest, at_place};
pub use self::compare::{Baseline, Change, Compare, Compared, ImageCompare, THRESHOLD_PPM};
pub use self::compare_request::{
    CompareRequest, ImageCompareRequest, MAX_IGNORED_AREAS, MAX_REGION_PX, TextCompareRequest,
};
pub use self::cron::{CRON_CHARS, Cron};
pub use self::decision::{ALERT_AFTER_FAILURES, Alerts, Progress, RunDecision};
pub use self::element_changes::{ELEMENT_CHANGE_CHARS, ElementChange, ElementChangeKind, MAX_ELEMENT_CHANGES};
pub use self::file_result::{FileResult, FileResults};
pub use self::outcome::RunOutcome;
pub use self::quiet::{Quiet, QuietRequest};
pub use self::record::{Monitor, MonitorState, Run, RunError};
pub use self::request::{KEEP, MonitorChange, MonitorRequest, MonitorSpec, NAME_CHARS, Notify, NotifyRequest};
pub use self::schedule::{Every, EveryUnit, LocalCron, Phase, Schedule};
pub use self::text::{MAX_PATTERNS, PATTERN_CHARS, TextCompare};
pub use self::text_changes::{MAX_TEXT_CHANGES, TEXT_CHANGE_CHARS, TextChange};
pub use self::text_diff::{MAX_TEXT_ROWS, TextCounts, TextDiff, TextLine, TextRow, TextRowKind};
pub use self::word_changes::{TextPiece, changed_words};

/// Monitors that a team may have in each environment, unless the operator sets another number.
pub const MAX_MONITORS: u32 = 50;
/// Kept runs for each monitor that a team may have: all its monitors in an environment together keep at most so many.
pub const KEPT_PER_MONITOR: u32 = 100;
/// The largest stored capture of a monitor, with its secret options, in bytes.
pub const MAX_CAPTURE_BYTES: usize = 16 << 10;
