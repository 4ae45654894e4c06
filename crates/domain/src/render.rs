//! The port between the job path and whatever makes pictures.

use std::collections::BTreeMap;
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

/// How a renderer is, for operators. Nothing is decided by it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// Name and version of the browser that takes new grabs; empty while it is replaced.
    pub browser: String,
    /// How often a browser was replaced, by reason.
    pub restarts: BTreeMap<String, u64>,
    /// Memory of its browsers.
    pub memory_bytes: u64,
    /// Is each browser in a network of its own?
    pub is_jailed: bool,
    /// The same as a sentence, with the reason.
    pub jail: String,
    /// Did the self-test at its start find that no page gets past the guard?
    pub is_tested: bool,
    /// The same as a sentence.
    pub self_test: String,
}

/// Makes a picture of a page. Two exist: the browser, and the placeholder that test keys get.
pub trait Renderer: Send + Sync + 'static {
    /// Renders within the task's budget. Dropping the future stops the work and frees all it held.
    fn render(&self, task: RenderTask) -> impl Future<Output = Result<Capture, RenderError>> + Send;

    /// How it is now. Quick, since it is asked every few seconds.
    fn condition(&self) -> Condition;
}
