//! The images of live pages, which are kept for some minutes.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use grabd_domain::Timestamp;
use parking_lot::Mutex;
use tokio::sync::OnceCell;

use super::image::{SampleError, SampleImage};

/// How long an image is kept. Until then the site is not visited again with the same options.
const IMAGE_TTL: Duration = Duration::from_secs(15 * 60);
/// How long a failure is kept, so that visitors cannot make this service visit a broken site again and again.
const FAILURE_TTL: Duration = Duration::from_secs(60);
/// The largest image that is kept. With at most five sites and eight sets of options each, all of them have 60 MiB.
const MAX_BYTES: usize = 3 << 19;

/// The outcome of a render, until it expires.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    pub(super) image: Result<Arc<SampleImage>, SampleError>,
    until: Timestamp,
}

impl Outcome {
    /// The outcome of a render that ended now. An image that is too large counts as a failure.
    pub(super) fn of(image: Result<SampleImage, SampleError>, now: Timestamp) -> Self {
        match image {
            Ok(image) if image.image.len() <= MAX_BYTES => Self { image: Ok(Arc::new(image)), until: now + IMAGE_TTL },
            Ok(_) => Self { image: Err(SampleError::TooLarge), until: now + FAILURE_TTL },
            Err(error) => Self { image: Err(error), until: now + FAILURE_TTL },
        }
    }
}

/// The place of an outcome. It is empty until the first render has ended.
pub(super) type Cell = Arc<OnceCell<Outcome>>;

/// The outcomes, by place. There are at most as many as samples of live pages.
#[derive(Default)]
pub(super) struct OutcomeCache(Mutex<HashMap<usize, Cell>>);

impl OutcomeCache {
    /// The cell of a place. Expired outcomes are removed.
    pub(super) fn cell(&self, place: usize, now: Timestamp) -> Cell {
        self.forget_expired(now);
        Arc::clone(self.0.lock().entry(place).or_default())
    }

    /// Removes the outcomes that have expired.
    pub(super) fn forget_expired(&self, now: Timestamp) {
        let mut cells = self.0.lock();
        // A cell without an outcome stays only while somebody waits for it.
        cells.retain(|_, cell| match cell.get() {
            Some(outcome) => now < outcome.until,
            None => Arc::strong_count(cell) > 1,
        });
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.0.lock().len()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_ms(seconds * 1000)
    }

    fn image(bytes: usize) -> SampleImage {
        SampleImage { image: Bytes::from(vec![0; bytes]), width: 1, height: 1, execution_ms: 1 }
    }

    #[test]
    fn images_expire_after_fifteen_minutes_and_failures_after_one() {
        let cache = OutcomeCache::default();
        cache.cell(0, at(0)).set(Outcome::of(Ok(image(1)), at(0))).unwrap();
        cache.cell(1, at(0)).set(Outcome::of(Err(SampleError::Failed), at(0))).unwrap();
        assert!(cache.cell(0, at(59)).initialized() && cache.cell(1, at(59)).initialized());
        assert!(cache.cell(0, at(60)).initialized() && !cache.cell(1, at(60)).initialized());
        assert!(cache.cell(0, at(899)).initialized());
        cache.forget_expired(at(900));
        assert_eq!(cache.len(), 0, "the memory is given back without another visitor");
    }

    #[test]
    fn waiting_visitors_share_a_cell_that_is_removed_when_they_have_left() {
        let cache = OutcomeCache::default();
        let (first, second) = (cache.cell(0, at(0)), cache.cell(0, at(1)));
        assert!(Arc::ptr_eq(&first, &second));
        drop((first, second));
        cache.forget_expired(at(2));
        assert_eq!(cache.len(), 0);
    }

    #[test]
    fn image_that_is_too_large_is_not_kept() {
        assert!(Outcome::of(Ok(image(MAX_BYTES)), at(0)).image.is_ok());
        assert_eq!(Outcome::of(Ok(image(MAX_BYTES + 1)), at(0)).image, Err(SampleError::TooLarge));
    }
}
