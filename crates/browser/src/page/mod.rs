//! Captures one grab in a prepared tab: loads the page, waits until it has settled, takes the image and checks the
//! result.
//!
//! [`capture`] is the whole procedure. Another procedure would be a function with the same signature.

mod area;
mod clock;
mod consent;
mod drive;
mod extract;
mod frames;
mod freeze;
mod identity;
mod interact;
mod intercept;
mod metadata;
mod report;
mod requested;
mod script;
mod settle;
mod shot;
mod state;
mod verdict;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chromiumoxide::cdp::browser_protocol::browser::BrowserContextId;
use grabd_domain::capture::{CaptureSpec, Viewport};
use grabd_domain::grabs::{Failure, FailureReason, RenderMetadata};
use grabd_domain::render::CapturedFile;
use grabd_memory::MemoryBudget;
use tokio::time::Instant;

pub(crate) use clock::TimeMode;
pub(crate) use drive::metrics;
pub(crate) use frames::{DrawLock, Frames};
pub(crate) use identity::Identity;
pub(crate) use watch::Watch;

use crate::cdp::{CallError, Client};
use crate::{FilterLists, proxy};

/// A blank page in its own browser context, ready for one grab.
pub(crate) struct Tab {
    /// The CDP client of its browser.
    pub(crate) client: Client,
    /// Its browser context, which has no other page.
    pub(crate) context: BrowserContextId,
    /// The page's CDP session.
    pub(crate) session: String,
    /// The state of the page from its events.
    pub(crate) watch: Arc<Watch>,
    /// The context's own proxy listener. Dropping it closes all connections of the grab.
    pub(crate) listener: proxy::Listener,
    /// The size of its layout viewport.
    pub(crate) viewport: Viewport,
    /// How its frames are drawn.
    pub(crate) frames: Frames,
    /// What its browser calls itself.
    pub(crate) identity: Arc<Identity>,
}

impl Tab {
    /// Returns true if the page's process crashed.
    pub(crate) fn has_crashed(&self) -> bool {
        self.watch.read(|seen| seen.gone == Some(watch::Gone::Crashed))
    }
}

/// The capture limits that the operator configures.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    /// How long a page may take to settle after its load event.
    pub(crate) settle_budget: Duration,
    /// The maximum height of an image, in pixels.
    pub(crate) full_page_max_height: u32,
    /// The maximum size of an image, in bytes.
    pub(crate) image_max_bytes: u64,
    /// The memory in which an image is received.
    pub(crate) memory: MemoryBudget,
    /// The lists by which ads and trackers are blocked.
    pub(crate) lists: Arc<FilterLists>,
}

/// A captured image and its metadata.
pub(crate) struct Picture {
    pub(crate) image: Bytes,
    pub(crate) metadata: RenderMetadata,
    pub(crate) files: Vec<CapturedFile>,
}

/// Why there is no image.
#[derive(Debug)]
pub(crate) enum CaptureError {
    /// The page failed.
    Page(Failure),
    /// The browser is dying or does not answer, so the page's result is unknown.
    Lost(String),
    /// The page does not work in virtual time: it waits for its clock, or is no longer drawn.
    NeedsRealTime,
}

impl CaptureError {
    fn failed(message: impl Into<String>) -> Self {
        Self::Page(Failure::new(FailureReason::RenderFailed, message))
    }
}

impl From<Failure> for CaptureError {
    fn from(failure: Failure) -> Self {
        Self::Page(failure)
    }
}

impl From<CallError> for CaptureError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Closed => Self::Lost("the browser died".into()),
            // The page's process answers these calls, so a busy page is the cause.
            CallError::Timeout(_) => Self::failed("The page did not respond."),
            CallError::Refused { .. } | CallError::InvalidResponse(_) | CallError::TooLarge { .. } => {
                Self::Lost(error.to_string())
            }
        }
    }
}

/// Captures what `spec` requests, in a tab that is used for nothing else. The caller cancels it at `deadline`.
///
/// Cancel-safe: it owns nothing, and the caller disposes of the tab.
pub(crate) async fn capture(
    tab: &Tab,
    spec: &CaptureSpec,
    limits: Limits,
    time: TimeMode,
    deadline: Instant,
) -> Result<Picture, CaptureError> {
    drive::Drive::new(tab, spec, limits, time, deadline).run().await
}

/// The metadata of a failed grab, without addresses that the guard refused.
pub(crate) fn failure_metadata(tab: &Tab, failure: &Failure) -> RenderMetadata {
    let metadata = metadata::of_tab(tab);
    match failure.reason {
        FailureReason::SsrfDetected => RenderMetadata { final_url: None, http_status: None, ..metadata },
        FailureReason::RenderBlocked | FailureReason::RenderFailed | FailureReason::InternalError => metadata,
    }
}
