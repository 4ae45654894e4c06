//! Captures a sample, or returns the image that was made before.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use grabd_domain::Fault;
use grabd_domain::admission::Payer;
use grabd_domain::capture::CaptureSpec;
use grabd_domain::ids::TeamId;
use grabd_domain::render::{Capture, RenderTask, Renderer, SlotHold, StageReporter};
use grabd_domain::target::TargetUrl;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::cache::Outcome;
use super::image::{SampleError, SampleImage};
use super::sample::{Place, Sample, SamplePage, SampleSite};
use crate::service::Core;
use crate::{identity, random, targets};

/// Time limit of a render. The pages need a second.
const TIME_LIMIT: Duration = Duration::from_secs(10);
/// Time limit of a visitor, who may wait for the render of another one.
const WAIT_LIMIT: Duration = Duration::from_secs(15);

impl Core {
    /// The pages that visitors may capture, those that come with grabd first.
    pub fn sample_pages(&self) -> impl Iterator<Item = SamplePage> {
        let sites = 0..self.sample_sites().len();
        SamplePage::BUNDLED.into_iter().chain(sites.map(|at| SamplePage::Site(SampleSite(at))))
    }

    /// The URL of a live page.
    pub fn sample_url(&self, SampleSite(at): SampleSite) -> Option<&TargetUrl> {
        self.sample_sites().get(at)
    }

    fn sample_sites(&self) -> &[TargetUrl] {
        &self.settings.operations.sample_sites
    }

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
    let image = async {
        match sample.place() {
            Place::Bundled(at) => {
                let image = core.samples.bundled.get(at).ok_or(SampleError::Unavailable)?;
                image.get_or_try_init(async || render(core, sample).await.map(Arc::new)).await.cloned()
            }
            Place::Site(at) => {
                let cell = core.samples.sites.cell(at, core.clock.now());
                cell.get_or_try_init(|| render_site(core, sample)).await.cloned()?.image
            }
        }
    };
    timeout(WAIT_LIMIT, image).await.map_err(|_| SampleError::Busy)?
}

/// The image of a sample, if it was made before. It renders nothing.
pub fn find_cached(core: &Core, sample: Sample) -> Option<Arc<SampleImage>> {
    match sample.place() {
        Place::Bundled(at) => core.samples.bundled.get(at)?.get().cloned(),
        Place::Site(at) => core.samples.sites.cell(at, core.clock.now()).get()?.image.clone().ok(),
    }
}

/// Renders a live page. A failure of the page is kept as the outcome; the lack of a slot is not.
async fn render_site(core: &Core, sample: Sample) -> Result<Outcome, SampleError> {
    match render(core, sample).await {
        Err(error @ (SampleError::Busy | SampleError::Unavailable)) => Err(error),
        image => Ok(Outcome::of(image, core.clock.now())),
    }
}

async fn render(core: &Core, sample: Sample) -> Result<SampleImage, SampleError> {
    let samples = &core.samples;
    let render = samples.render.get().ok_or(SampleError::Unavailable)?;
    let _turn = samples.turn.try_acquire().map_err(|_| SampleError::Busy)?;
    let spec =
        CaptureSpec::parse(&sample.request(core.sample_sites()).ok_or(SampleError::Unavailable)?).map_err(|fault| {
            tracing::error!(?fault, ?sample, "a sample is not valid");
            SampleError::Failed
        })?;
    check_target(core, &spec).await.map_err(|fault| {
        tracing::warn!(?fault, ?sample, "a sample may not be captured");
        SampleError::Failed
    })?;
    let now = core.clock.now();
    let visitors = Payer::of_team(TeamId(Uuid::nil()));
    let kept = core.queue.admission.kept_percent(now);
    let slot = core.queue.dispatcher.reserve(visitors, kept).ok_or(SampleError::Busy)?;
    let id = random::grab_id(now);
    let (stages, is_free) = (StageReporter::default(), CancellationToken::new());
    let (hold, domains) = (SlotHold::new(is_free.clone().drop_guard()), core.grabs.domains.current());
    let signer = identity::signer(core.signing_identity(), core.clock.clone());
    let task =
        RenderTask { id, spec, budget: TIME_LIMIT, alone: false, stages, slot: hold, domains, signer, proxy: None };
    let rendered = render(task).await;
    // A sample that is late is no harm.
    let _ = timeout(TIME_LIMIT, is_free.cancelled()).await;
    drop(slot);
    let failed = |error: &dyn std::fmt::Display| {
        tracing::warn!(%error, ?sample, "a sample could not be captured");
        SampleError::Failed
    };
    let Capture { image, metadata, execution_ms, .. } = rendered.map_err(|error| failed(&error))?;
    core.grabs.domains.check_document(metadata.final_url.as_deref()).map_err(|failure| failed(&failure.message))?;
    let (width, height) = (metadata.image_width.unwrap_or(0), metadata.image_height.unwrap_or(0));
    Ok(SampleImage { image, width, height, execution_ms })
}

/// Checks the URL as that of a grab. The pages that come with grabd have a URL that is never requested.
async fn check_target(core: &Core, spec: &CaptureSpec) -> Result<(), Fault> {
    if spec.has_own_document() {
        return Ok(());
    }
    targets::check_page_url(core, &spec.url)?;
    targets::check_host(core, &spec.url).await
}
