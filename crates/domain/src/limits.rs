//! Fixed limits of the public contract (its section 8) and of what is derived from it.

use std::ops::RangeInclusive;
use std::time::Duration;

/// Viewport width in CSS pixels.
pub const WIDTH: RangeInclusive<i64> = 320..=1920;
/// Width when none is asked for.
pub const DEFAULT_WIDTH: u32 = 1280;
/// Viewport height in CSS pixels.
pub const HEIGHT: RangeInclusive<i64> = 240..=1080;
/// Height when none is asked for.
pub const DEFAULT_HEIGHT: u32 = 720;
/// What a full-page grab reports as its height, whatever the page's length.
pub const FULL_PAGE_REPORTED_HEIGHT: u32 = 3240;
/// Wait before the shot, in milliseconds.
pub const DELAY_MS: RangeInclusive<i64> = 0..=10_000;
/// Length of a selector in characters: a bound of ours, far beyond any selector a person writes.
pub const SELECTOR_CHARS: usize = 1024;
/// Length of a target address in bytes.
pub const URL_BYTES: usize = 4096;
/// Grabs on one page of a list.
pub const PAGE_SIZE: RangeInclusive<i64> = 1..=100;
/// Page size when none is asked for.
pub const DEFAULT_PAGE_SIZE: u32 = 25;
/// From a synchronous create to its answer, queue included.
pub const SYNC_DEADLINE: Duration = Duration::from_secs(25);
/// How long an asynchronous grab may wait and run in all.
pub const ASYNC_DEADLINE: Duration = Duration::from_secs(15 * 60);
/// The longest one attempt at a render may take.
pub const RENDER_BUDGET: Duration = Duration::from_secs(25);
/// What a lease outlives its render by: upload, commit and a slow clock.
pub const LEASE_MARGIN: Duration = Duration::from_secs(10);
/// Attempts before a grab is given up as an infrastructure failure.
pub const MAX_ATTEMPTS: u32 = 3;
/// A job with less time left than this is not worth leasing.
pub const LEASE_FLOOR: Duration = Duration::from_secs(2);
/// The usage window.
pub const USAGE_WINDOW: Duration = Duration::from_secs(30 * 24 * 60 * 60);
