//! One grab in one prepared tab: driven until it is ready, captured, judged.
//!
//! [`capture`] is the whole procedure; another one would stand beside it behind the same signature.

mod drive;
mod facts;
mod frame;
mod script;
mod settle;
mod shot;
mod verdict;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use chromiumoxide::cdp::browser_protocol::browser::BrowserContextId;
use grabd_domain::capture::{CaptureSpec, Viewport};
use grabd_domain::grabs::{Facts, Failure, FailureReason};
use tokio::time::Instant;

pub(crate) use drive::metrics;
pub(crate) use watch::Watch;

use crate::cdp::{CallError, Client};
use crate::proxy;

/// A blank page in a context of its own, ready for one grab.
pub(crate) struct Tab {
    /// The browser it is in.
    pub(crate) client: Client,
    /// The context it is alone in.
    pub(crate) context: BrowserContextId,
    /// The page's session.
    pub(crate) session: String,
    /// What is seen of it.
    pub(crate) watch: Arc<Watch>,
    /// The context's own proxy; dropping it cuts every connection of the grab.
    pub(crate) listener: proxy::Listener,
    /// The size it is laid out in.
    pub(crate) viewport: Viewport,
}

impl Tab {
    /// Did the page's process die?
    pub(crate) fn has_crashed(&self) -> bool {
        self.watch.look(|seen| seen.gone == Some(watch::Gone::Crashed))
    }
}

/// The limits of a capture that are the operator's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// From the load event to the hard stop.
    pub(crate) settle_budget: Duration,
    /// The tallest picture, in pixels.
    pub(crate) full_page_max_height: u32,
}

/// A picture, with what was seen.
pub(crate) struct Picture {
    pub(crate) image: Vec<u8>,
    pub(crate) facts: Facts,
}

/// Why there is no picture.
#[derive(Debug)]
pub(crate) enum Ended {
    /// The page's own doing.
    Page(Failure),
    /// The browser is dying or does not answer: nobody can tell what the page did.
    Lost(String),
}

impl Ended {
    fn failed(message: impl Into<String>) -> Self {
        Self::Page(Failure::new(FailureReason::RenderFailed, message))
    }
}

impl From<Failure> for Ended {
    fn from(failure: Failure) -> Self {
        Self::Page(failure)
    }
}

impl From<CallError> for Ended {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Closed => Self::Lost("the browser died".into()),
            // The page's process answers these, so a page that keeps it busy is the reason.
            CallError::Timeout(_) => Self::failed("The page did not respond."),
            CallError::Refused { .. } | CallError::Unreadable(_) => Self::Lost(error.to_string()),
        }
    }
}

/// Captures what `spec` asks for, in a tab that is used for nothing else. The caller ends it at `deadline`.
///
/// Cancel-safe in that it owns nothing: who drops it disposes of the tab.
pub(crate) async fn capture(
    tab: &Tab,
    spec: &CaptureSpec,
    limits: Limits,
    deadline: Instant,
) -> Result<Picture, Ended> {
    drive::Drive::new(tab, spec, limits, deadline).run().await
}

/// What was seen of a grab that has no picture, without addresses that the guard refused.
pub(crate) fn facts_of_failure(tab: &Tab, failure: &Failure) -> Facts {
    let facts = facts::seen(tab);
    match failure.reason {
        FailureReason::SsrfDetected => Facts { final_url: None, http_status: None, ..facts },
        FailureReason::RenderBlocked | FailureReason::RenderFailed | FailureReason::InternalError => facts,
    }
}
