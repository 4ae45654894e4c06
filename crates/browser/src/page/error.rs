//! Why a capture has no image.

use grabd_domain::grabs::{Failure, FailureReason};

use crate::cdp::CallError;

/// The message of failures of pages that do not answer.
pub(crate) const UNRESPONSIVE: &str = "The page did not respond.";

/// Why there is no image.
#[derive(Debug)]
pub(crate) enum CaptureError {
    /// The page failed.
    Page(Failure),
    /// The browser is dying or does not answer, so the page's result is unknown.
    Lost(String),
    /// The page does not work in virtual time: it waits for its clock, or is no longer drawn.
    NeedsRealTime,
    /// The browser does not draw the page on demand: it has lost a frame, or a worker draws.
    NeedsTimer,
}

impl CaptureError {
    /// The page failed, as `message` says.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::Page(Failure::new(FailureReason::RenderFailed, message))
    }

    /// Whether the page did not answer, or was not drawn.
    pub(super) fn is_unresponsive(&self) -> bool {
        match self {
            Self::Page(failure) => failure.message == UNRESPONSIVE,
            Self::NeedsRealTime | Self::NeedsTimer => true,
            Self::Lost(_) => false,
        }
    }

    /// The page exceeds the limit of bytes.
    pub(super) fn over_limit() -> Self {
        Self::failed("The page loads more than a capture may.")
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
            CallError::Timeout(call) => {
                tracing::debug!(call, "a page did not respond");
                Self::failed(UNRESPONSIVE)
            }
            CallError::Refused { .. } | CallError::InvalidResponse(_) | CallError::TooLarge { .. } => {
                Self::Lost(error.to_string())
            }
        }
    }
}
