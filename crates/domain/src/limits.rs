//! Fixed limits of the public contract (section 8) and limits derived from them.

use std::ops::RangeInclusive;
use std::time::Duration;

/// Default viewport width.
pub const DEFAULT_WIDTH: u32 = 1280;
/// Default viewport height.
pub const DEFAULT_HEIGHT: u32 = 720;
/// Height that full-page grabs report, regardless of the page's height.
pub const FULL_PAGE_REPORTED_HEIGHT: u32 = 3240;
/// Maximum length of a target URL in bytes.
pub const URL_BYTES: usize = 4096;
/// Maximum length of a URL that a page chose, such as `final_url`, in bytes.
pub const PAGE_URL_BYTES: usize = 2048;
/// Maximum length of the message of a failed grab, in bytes.
pub const MESSAGE_BYTES: usize = 2048;
/// Maximum number of warnings of a grab.
pub const WARNINGS: usize = 64;
/// Page size of lists.
pub const PAGE_SIZE: RangeInclusive<i64> = 1..=100;
/// Default page size.
pub const DEFAULT_PAGE_SIZE: u32 = 25;
/// Time limit of a synchronous create, including the time in the queue.
pub const SYNC_DEADLINE: Duration = Duration::from_secs(25);
/// Time limit of an asynchronous grab, including the time in the queue.
pub const ASYNC_DEADLINE: Duration = Duration::from_secs(15 * 60);
/// Time limit of one render attempt, unless the caller of an asynchronous grab allows more.
pub const RENDER_BUDGET: Duration = Duration::from_secs(25);
/// The most time that the caller of an asynchronous grab may allow for one render attempt.
pub const MAX_RENDER_BUDGET: Duration = Duration::from_secs(60);
/// How much longer a lease lasts than its render: time for the upload, the commit and clock drift. It lasts longer if
/// something is done with the image before, as [`COMPARE_LIMIT`], [`PHASH_LIMIT`], [`MARKS_LIMIT`],
/// [`THUMBNAIL_LIMIT`], [`EVIDENCE_LIMIT`] and [`UPLOAD_LIMIT`] say.
pub const LEASE_MARGIN: Duration = Duration::from_secs(10);
/// Time limit of the comparison of an image with an earlier one, including the wait for memory.
pub const COMPARE_LIMIT: Duration = Duration::from_secs(10);
/// Time limit of the perceptual hash of an image, including the wait for memory.
pub const PHASH_LIMIT: Duration = Duration::from_secs(5);
/// Time limit of the marks on a copy of an image, including the wait for memory.
pub const MARKS_LIMIT: Duration = Duration::from_secs(5);
/// Time limit of the smaller copy of an image, including the wait for memory.
pub const THUMBNAIL_LIMIT: Duration = Duration::from_secs(5);
/// Time limit of the signed package about a capture, including the wait for memory and for a time stamp.
pub const EVIDENCE_LIMIT: Duration = Duration::from_secs(15);
/// Time limit of the upload of an image to the URL of the caller.
pub const UPLOAD_LIMIT: Duration = Duration::from_secs(20);
/// The most time that a lease lasts longer than its render.
pub const MAX_LEASE_MARGIN: Duration = Duration::from_secs(
    LEASE_MARGIN.as_secs()
        + COMPARE_LIMIT.as_secs()
        + PHASH_LIMIT.as_secs()
        + MARKS_LIMIT.as_secs()
        + THUMBNAIL_LIMIT.as_secs()
        + EVIDENCE_LIMIT.as_secs()
        + UPLOAD_LIMIT.as_secs(),
);
/// How long after its lease the image of a lost attempt is deleted. The signed URL of an upload is not valid any more when
/// the lease ends, and what was sent before has arrived or was given up by then, so nothing is stored after the deletion.
pub const LOST_IMAGE_DELAY: Duration = Duration::from_secs(60);
/// Number of attempts before a grab fails with an internal error.
pub const MAX_ATTEMPTS: u32 = 3;
/// Jobs with less time left are not leased.
pub const LEASE_FLOOR: Duration = Duration::from_secs(2);
/// How long a caller waits while a request with the same idempotency key is in flight.
pub const CONFLICT_RETRY: Duration = Duration::from_secs(2);
/// How long a caller waits while the queue of its team is full.
pub const QUEUE_RETRY: Duration = Duration::from_secs(5);
/// How long a caller waits before it repeats a create that was refused for lack of disk space.
pub const STORAGE_RETRY: Duration = Duration::from_secs(60);
/// How long a caller waits before it repeats a create that was refused for the size of its team's images.
pub const TEAM_STORAGE_RETRY: Duration = Duration::from_secs(60 * 60);
/// How long a caller waits before it repeats a request that failed because the database did not respond.
pub const OUTAGE_RETRY: Duration = Duration::from_secs(3);
/// Window of the usage counts.
pub const USAGE_WINDOW: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Shortens text from outside to at most `bytes` bytes, the ellipsis at its end included. Shorter text is unchanged.
pub fn shortened(mut text: String, bytes: usize) -> String {
    const MARK: char = '…';
    if text.len() <= bytes {
        return text;
    }
    text.truncate(text.floor_char_boundary(bytes.saturating_sub(MARK.len_utf8())));
    text.push(MARK);
    // Long texts would otherwise keep their memory.
    text.shrink_to_fit();
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_beyond_the_limit_is_cut_at_a_character_and_marked() {
        for (text, bytes, expected) in [
            ("abc", 3, "abc"),
            ("abcd", 4, "abcd"),
            ("abcde", 4, "a…"),
            ("äöü", 6, "äöü"),
            ("äöüa", 6, "ä…"),
            ("", 3, ""),
        ] {
            let cut = shortened(text.to_owned(), bytes);
            assert_eq!(cut, expected);
            assert!(cut.len() <= bytes);
        }
    }
}
