//! The figures of the latest comparisons of existing grabs, and the turns to make them.

use bytes::Bytes;
use grabd_domain::grabs::{Difference, ImageKey};
use grabd_domain::ids::PayerId;
use grabd_limiters::Turns;

use crate::cache::Cache;

/// Comparisons at the same time. They must not take the processors from captures.
const MAX_CONCURRENT: usize = 1;
/// Size of the figures in memory: those of hundreds of comparisons.
const CACHE_BYTES: usize = 1 << 20;

/// The images of the earlier and of the later grab.
type Pair = (ImageKey, ImageKey);

/// Figures of comparisons, and the turns to make them.
pub(crate) struct Comparisons {
    /// Differences as JSON.
    cache: Cache<Pair, Bytes>,
    pub(super) turns: Turns<PayerId>,
}

impl Default for Comparisons {
    fn default() -> Self {
        Self { cache: Cache::new(CACHE_BYTES), turns: Turns::new(MAX_CONCURRENT, 1) }
    }
}

impl Comparisons {
    /// What changed between two images, if they were compared lately.
    pub(super) fn find(&self, pair: &Pair) -> Option<Difference> {
        self.cache.get(pair).and_then(|json| serde_json::from_slice(&json).ok())
    }

    /// Keeps what changed between two images.
    pub(super) fn keep(&self, pair: Pair, difference: &Difference) {
        if let Ok(json) = serde_json::to_vec(difference) {
            self.cache.put(pair, &Bytes::from(json));
        }
    }
}
