//! How the frames of a page are drawn.

use std::sync::Arc;

use chromiumoxide::cdp::browser_protocol::headless_experimental::BeginFrameParams;
use tokio::sync::Mutex;
use tokio::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::cdp::{CallError, Client, RawResult};

/// The time limit of one frame. A frame that the page blocks ends when the page is closed.
const LIMIT: Duration = Duration::from_secs(60);

/// How long a frame that is still being drawn may take after the capture has ended. A busy machine draws slowly; a frame
/// during which the page began an endless loop never ends.
const STUCK: Duration = Duration::from_secs(1);

/// What triggers frames.
#[derive(Clone)]
pub(crate) enum Frames {
    /// A timer, sixty times a second.
    Timer,
    /// A `beginFrame` command.
    OnDemand(OnDemand),
}

/// Draws frames of one page.
///
/// *Invariant:* a browser draws one frame at a time. Overlapping requests, even for two pages, end its GPU process:
/// "Got overlapping IssueExternalBeginFrame" (Chromium 156).
#[derive(Clone)]
pub(crate) struct OnDemand {
    lock: Arc<Mutex<()>>,
    tracker: TaskTracker,
    gone: CancellationToken,
}

/// Shared by all pages of a browser.
#[derive(Clone, Default)]
pub(crate) struct DrawLock(Arc<Mutex<()>>);

impl DrawLock {
    /// Creates the frame source of one more page. Its tasks run on `tracker`.
    pub(crate) fn page(&self, tracker: &TaskTracker) -> OnDemand {
        OnDemand { lock: self.0.clone(), tracker: tracker.clone(), gone: CancellationToken::new() }
    }
}

impl OnDemand {
    /// Draws a frame after all frames that were requested before. The frame is completed even if this future is
    /// dropped.
    pub(crate) async fn draw(
        &self,
        client: &Client,
        session: &str,
        frame: BeginFrameParams,
    ) -> Result<RawResult, CallError> {
        let lock = self.lock.clone().lock_owned().await;
        let (client, session, gone) = (client.clone(), session.to_owned(), self.gone.clone());
        let drawn = self.tracker.spawn(async move {
            let _lock = lock;
            tokio::select! {
                biased;
                drawn = client.call_raw(LIMIT, Some(&session), &frame) => drawn,
                () = gone.cancelled() => Err(CallError::Closed),
            }
        });
        drawn.await.unwrap_or(Err(CallError::Closed))
    }
}

impl Frames {
    /// Returns true if a frame does not end. It blocks all later frames of the browser.
    pub(crate) async fn are_stuck(&self) -> bool {
        match self {
            Self::Timer => false,
            Self::OnDemand(frames) => tokio::time::timeout(STUCK, frames.lock.lock()).await.is_err(),
        }
    }

    /// Cancels the current frame because the page is closed.
    pub(crate) fn end(&self) {
        match self {
            Self::Timer => {}
            Self::OnDemand(frames) => frames.gone.cancel(),
        }
    }
}
