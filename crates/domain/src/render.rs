//! The interface between the job queue and the renderers.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::capture::{CaptureSpec, FileKind};
use crate::domains::DomainRules;
use crate::grabs::{Failure, RenderMetadata, SlicePlace, Stage, StepImage, ViewportSize};
use crate::identity::SignatureFields;
use crate::ids::GrabId;
use crate::proxies::ProxyRoute;

/// One attempt at a grab.
#[derive(Clone, Debug)]
pub struct RenderTask {
    /// The grab, for logs.
    pub id: GrabId,
    /// What to capture.
    pub spec: CaptureSpec,
    /// Time limit for the image, measured by the renderer's monotonic clock.
    pub budget: Duration,
    /// Use a new browser for this task only. Set after an attempt lost its browser, so that other grabs are not
    /// affected again.
    pub alone: bool,
    /// Receives the stages as they are reached.
    pub stages: StageReporter,
    /// Kept by the renderer until nothing of the attempt runs any more.
    pub slot: SlotHold,
    /// The domains whose documents may be loaded.
    pub domains: Arc<DomainRules>,
    /// Signs requests for documents.
    pub signer: RequestSigner,
    /// The proxy of the team that the page is loaded through. `None`: connections are direct.
    pub proxy: Option<Arc<ProxyRoute>>,
}

impl RenderTask {
    /// The time limit: that of the attempt, or of the caller if it is shorter.
    pub fn time_limit(&self) -> Duration {
        self.budget.min(self.spec.timeout)
    }
}

/// Receives the stages of an attempt. A stage may be reported again; the receiver ignores that.
#[derive(Clone, Default)]
pub struct StageReporter(Option<Arc<dyn Fn(Stage) + Send + Sync>>);

impl StageReporter {
    /// Calls `report` with each stage. It must be fast.
    pub fn new(report: impl Fn(Stage) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(report)))
    }

    /// Reports that a stage was reached.
    pub fn reach(&self, stage: Stage) {
        if let Some(report) = &self.0 {
            report(stage);
        }
    }
}

impl fmt::Debug for StageReporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StageReporter").field(&self.0.is_some()).finish()
    }
}

/// Makes the header fields that sign a request for a URL. `None`: it is not signed.
type Sign = dyn Fn(&str) -> Option<SignatureFields> + Send + Sync;

/// Signs requests in the name of the service. By default, no request is signed. The renderer does not see the key.
#[derive(Clone, Default)]
pub struct RequestSigner(Option<Arc<Sign>>);

impl RequestSigner {
    /// Calls `sign` with the URL of each request that is signed. It must be fast, and make a new signature each time.
    pub fn new(sign: impl Fn(&str) -> Option<SignatureFields> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(sign)))
    }

    /// Whether requests are signed.
    pub const fn is_active(&self) -> bool {
        self.0.is_some()
    }

    /// The header fields that sign a request for this URL. `None` if it is not signed.
    pub fn sign(&self, url: &str) -> Option<SignatureFields> {
        self.0.as_ref().and_then(|sign| sign(url))
    }
}

impl fmt::Debug for RequestSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RequestSigner").field(&self.is_active()).finish()
    }
}

/// Keeps a slot in use. A page may keep its processes busy for longer than its capture takes, so a renderer keeps a clone until
/// they have ended. The slot takes no other grab before all clones are dropped.
#[derive(Clone, Default)]
pub struct SlotHold(Option<Arc<dyn Send + Sync>>);

impl SlotHold {
    /// A hold that drops `guard` with its last clone.
    pub fn new(guard: impl Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(guard)))
    }
}

impl fmt::Debug for SlotHold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SlotHold").field(&self.0.is_some()).finish()
    }
}

/// A finished image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// The encoded file.
    pub image: Bytes,
    /// What was observed during the render.
    pub metadata: RenderMetadata,
    /// Duration of the render in milliseconds.
    pub execution_ms: u32,
    /// The attachments: all that were asked for.
    pub files: Vec<CapturedFile>,
    /// The slices of the image, from top to bottom. None unless they were asked for.
    pub slices: Vec<CapturedSlice>,
    /// The images in further viewports: all that were asked for, in that order.
    pub viewports: Vec<CapturedViewport>,
    /// The images that steps took: all that were asked for, in that order.
    pub step_images: Vec<CapturedStepImage>,
}

/// An attachment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturedFile {
    /// What it is.
    pub kind: FileKind,
    /// Its content.
    pub content: Bytes,
}

/// A slice of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturedSlice {
    /// Where it is in the image.
    pub place: SlicePlace,
    /// The encoded file.
    pub content: Bytes,
}

/// The image in a further viewport.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturedViewport {
    /// Its size in pixels, and that of the viewport.
    pub size: ViewportSize,
    /// The encoded file.
    pub content: Bytes,
}

/// An image that a step took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturedStepImage {
    /// Its name, and its size in pixels.
    pub image: StepImage,
    /// The encoded file.
    pub content: Bytes,
}

/// Why a render failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// The page could not be captured. Final and not charged.
    #[error("{}", failure.message)]
    Page {
        /// The failure reported to the caller.
        failure: Failure,
        /// What was observed before the failure.
        metadata: Box<RenderMetadata>,
    },
    /// The browser crashed or could not start. The grab is rendered again. The text is for the log.
    #[error("renderer lost: {0}")]
    Lost(String),
}

/// Status of a renderer, for operators. Not used for scheduling.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RendererStatus {
    /// Name and version of the browser that takes new grabs; empty while the browser is being replaced.
    pub browser: String,
    /// Number of browser replacements, by reason.
    pub restarts: BTreeMap<String, u64>,
    /// Memory used by its browsers.
    pub memory_bytes: u64,
    /// Whether each browser runs in its own network namespace.
    pub is_jailed: bool,
    /// Description of `is_jailed`, with the reason.
    pub jail: String,
    /// Whether the self-test at start confirmed that pages cannot bypass the guard.
    pub is_tested: bool,
    /// Description of `is_tested`.
    pub self_test: String,
}

/// Makes the image of a page. There are two renderers: the browser, and the placeholder renderer for test keys.
pub trait Renderer: Send + Sync + 'static {
    /// Renders within the task's budget. Dropping the future cancels the render and frees its resources.
    fn render(&self, task: RenderTask) -> impl Future<Output = Result<Capture, RenderError>> + Send;

    /// The current status. Must be fast: it is called every few seconds.
    fn status(&self) -> RendererStatus;
}
