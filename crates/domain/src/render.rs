//! The port between the job path and whatever makes pictures.

use std::future::Future;
use std::time::Duration;

use crate::capture::CaptureSpec;
use crate::grabs::{Facts, Failure};
use crate::ids::GrabId;

/// One attempt at a grab.
#[derive(Clone, Debug)]
pub struct RenderTask {
    /// Whose logs these are.
    pub id: GrabId,
    /// What to capture.
    pub spec: CaptureSpec,
    /// Time from now until the picture must be there, on the renderer's own monotonic clock.
    pub budget: Duration,
    /// Run in a fresh browser of its own: an earlier attempt lost its browser, and neighbours must not pay twice.
    pub alone: bool,
}

/// A finished picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// The encoded file.
    pub image: Vec<u8>,
    /// What was seen.
    pub facts: Facts,
    /// How long it took.
    pub execution_ms: u32,
}

/// Why there is no picture.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// The page's own doing: final, and free of charge.
    #[error("{}", failure.message)]
    Page {
        /// What the caller is told.
        failure: Failure,
        /// What was seen until then.
        facts: Facts,
    },
    /// Ours: the browser died or could not start. The grab is rendered again. The text is for our log.
    #[error("renderer lost: {0}")]
    Lost(String),
}

/// Makes a picture of a page. Two exist: the browser, and the placeholder that test keys get.
pub trait Renderer: Send + Sync + 'static {
    /// Renders within the task's budget. Dropping the future stops the work and frees all it held.
    fn render(&self, task: RenderTask) -> impl Future<Output = Result<Capture, RenderError>> + Send;
}
