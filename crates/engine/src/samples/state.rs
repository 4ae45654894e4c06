//! The renderer of samples, and the images that it has made.

use std::sync::{Arc, OnceLock};

use futures::future::BoxFuture;
use grabd_domain::Timestamp;
use grabd_domain::render::{Capture, RenderError, RenderTask};
use tokio::sync::{OnceCell, Semaphore};

use super::cache::OutcomeCache;
use super::image::SampleImage;
use super::sample::Sample;

/// Renders one task.
pub(super) type Render = dyn Fn(RenderTask) -> BoxFuture<'static, Result<Capture, RenderError>> + Send + Sync;

/// The renderer of samples, and the images that it has made.
pub(crate) struct Samples {
    /// Set in processes with browsers.
    pub(super) render: OnceLock<Box<Render>>,
    /// Held during a render: samples take one slot at most.
    pub(super) turn: Semaphore,
    /// Those of the pages that come with grabd, which do not change.
    pub(super) bundled: [OnceCell<Arc<SampleImage>>; Sample::BUNDLED],
    /// Those of live pages.
    pub(super) sites: OutcomeCache,
}

impl Samples {
    /// Removes the images of live pages that have expired.
    pub(crate) fn forget_expired(&self, now: Timestamp) {
        self.sites.forget_expired(now);
    }
}

impl Default for Samples {
    fn default() -> Self {
        Self {
            render: OnceLock::new(),
            turn: Semaphore::new(1),
            bundled: std::array::from_fn(|_| OnceCell::new()),
            sites: OutcomeCache::default(),
        }
    }
}
