//! Captures a sample, or returns the image that was made before.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use grabd_domain::admission::Account;
use grabd_domain::capture::CaptureSpec;
use grabd_domain::ids::TeamId;
use grabd_domain::render::{Capture, RenderTask, Renderer, StageReporter};
use tokio::time::timeout;
use uuid::Uuid;

use super::sample::Sample;
use super::state::SampleImage;
use crate::core::Core;
use crate::random;

/// Time limit of a render. The pages need a second.
const TIME_LIMIT: Duration = Duration::from_secs(10);
/// Time limit of a visitor, who may wait for the render of another one.
const WAIT_LIMIT: Duration = Duration::from_secs(15);

/// Why there is no image of a sample.
#[derive(Debug, thiserror::Error)]
pub enum SampleError {
    /// This process has no browsers.
    #[error("there are no browsers in this process")]
    Unavailable,
    /// No slot is idle, or grabs wait for one.
    #[error("all browsers are busy")]
    Busy,
    /// The render failed.
    #[error("the sample could not be captured")]
    Failed,
}

impl Core {
    /// Captures samples for visitors with this renderer, which is also that of the grabs.
    pub fn offer_samples<R: Renderer + Clone>(&self, renderer: R) {
        let render = move |task| {
            let renderer = renderer.clone();
            async move { renderer.render(task).await }.boxed()
        };
        // Only the first call counts; there is one renderer.
        let _ = self.samples.render.set(Box::new(render));
    }

    /// Whether this process can capture samples.
    pub fn offers_samples(&self) -> bool {
        self.samples.render.get().is_some()
    }
}

/// Captures a sample, or returns the image that was made before.
///
/// # Errors
/// When the sample cannot be captured now.
pub async fn capture(core: &Core, sample: Sample) -> Result<Arc<SampleImage>, SampleError> {
    let image = core.samples.images.get(sample.index()).ok_or(SampleError::Unavailable)?;
    let image = timeout(WAIT_LIMIT, image.get_or_try_init(|| render(core, sample))).await;
    image.map_err(|_| SampleError::Busy)?.cloned()
}

async fn render(core: &Core, sample: Sample) -> Result<Arc<SampleImage>, SampleError> {
    let samples = &core.samples;
    let render = samples.render.get().ok_or(SampleError::Unavailable)?;
    let _turn = samples.turn.try_acquire().map_err(|_| SampleError::Busy)?;
    let now = core.clock.now();
    let visitors = Account::of_team(TeamId(Uuid::nil()));
    let kept = core.queue.admission.kept_percent(now);
    let slot = core.queue.dispatcher.reserve(visitors, kept).ok_or(SampleError::Busy)?;
    let spec = CaptureSpec::parse(&sample.request()).map_err(|fault| {
        tracing::error!(?fault, ?sample, "a sample is not valid");
        SampleError::Failed
    })?;
    let id = random::grab_id(now);
    let task = RenderTask { id, spec, budget: TIME_LIMIT, alone: false, stages: StageReporter::default() };
    let rendered = render(task).await;
    drop(slot);
    match rendered {
        Ok(Capture { image, metadata, execution_ms, .. }) => {
            let (width, height) = (metadata.image_width.unwrap_or(0), metadata.image_height.unwrap_or(0));
            Ok(Arc::new(SampleImage { image, width, height, execution_ms }))
        }
        Err(error) => {
            tracing::warn!(%error, ?sample, "a sample could not be captured");
            Err(SampleError::Failed)
        }
    }
}
