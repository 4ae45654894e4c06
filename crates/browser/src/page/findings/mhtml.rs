//! Saves the page with what it shows, as MHTML.

use chromiumoxide::cdp::browser_protocol::page::CaptureSnapshotParams;
use grabd_domain::capture::FileKind;

use crate::cdp::CallError;
use crate::page::context::CaptureContext;
use crate::page::error::CaptureError;
use crate::page::findings::file_error::{not_made, too_large};
use crate::page::picture::shown::limit;

/// Saves the document with its frames, styles and images. The browser takes them from its memory, and loads nothing.
///
/// # Errors
/// If it cannot be saved in time, or is too large.
pub(super) async fn save(context: &CaptureContext<'_>) -> Result<Vec<u8>, CaptureError> {
    let (client, session) = (&context.tab.client, Some(context.tab.session.as_str()));
    match client.call_within(limit(context), session, CaptureSnapshotParams::default()).await {
        Ok(saved) => Ok(saved.data.into_bytes()),
        Err(CallError::TooLarge { .. }) => Err(too_large(FileKind::Mhtml)),
        Err(CallError::Refused { .. }) => Err(not_made(FileKind::Mhtml)),
        Err(CallError::Timeout(_)) => Err(CaptureError::failed("The page could not be saved as MHTML in time.")),
        Err(error) => Err(error.into()),
    }
}
