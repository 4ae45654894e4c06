//! Attaches to the frames of other sites that steps name. Each of them is in a process of its own, with a session of its own.

use std::sync::Arc;
use std::time::Duration;

use chromiumoxide::cdp::browser_protocol::emulation::SetFocusEmulationEnabledParams;
use chromiumoxide::cdp::browser_protocol::target::{
    AttachToTargetParams, DetachFromTargetParams, FilterEntry, GetTargetsParams, SessionId, TargetFilter,
};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::cdp::CallError;
use crate::page::context::CaptureContext;
use crate::page::error::CaptureError;

/// The time limit of a call. The browser itself answers.
const CALL_LIMIT: Duration = Duration::from_secs(2);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Attached {
    session_id: String,
}

/// The session of the frame with this id. `None` if it has no process of its own. The browser context of the capture has no other
/// page, and ids are those of frames of this page.
///
/// # Errors
/// If the browser is gone.
pub(super) async fn session_of(context: &CaptureContext<'_>, frame: &str) -> Result<Option<Arc<str>>, CaptureError> {
    if let Some(session) = context.frame_sessions.find(frame) {
        return Ok(Some(session));
    }
    let client = &context.tab.client;
    // The browser has no target for a frame before it has listed it.
    let only_frames = FilterEntry { exclude: None, r#type: Some("iframe".to_owned()) };
    let list = GetTargetsParams { filter: Some(TargetFilter::new(vec![only_frames])) };
    if answered(client.call_as::<_, IgnoredAny>(CALL_LIMIT, None, list).await)?.is_none() {
        return Ok(None);
    }
    let attach = AttachToTargetParams { flatten: Some(true), ..AttachToTargetParams::new(frame.to_owned()) };
    let attached = answered(client.call_as::<_, Attached>(CALL_LIMIT, None, attach).await)?;
    let Some(Attached { session_id }) = attached else { return Ok(None) };
    // As the page.
    let focus = SetFocusEmulationEnabledParams::new(true);
    answered(client.call_as::<_, IgnoredAny>(CALL_LIMIT, Some(&session_id), focus).await)?;
    let session: Arc<str> = session_id.into();
    context.frame_sessions.remember(frame, &session);
    Ok(Some(session))
}

/// Ends a session in which the frame cannot be used. The next attempt begins another one, so that they would add up.
pub(super) fn leave(context: &CaptureContext<'_>, frame: &str, session: &str) {
    context.frame_sessions.forget(frame);
    let detach = DetachFromTargetParams { session_id: Some(SessionId::new(session)) };
    context.tab.client.tell(None, &detach);
}

/// `None` if the frame is gone.
fn answered<T>(answer: Result<T, CallError>) -> Result<Option<T>, CaptureError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(CallError::Closed) => Err(CallError::Closed.into()),
        Err(error) => {
            tracing::debug!(%error, "a frame of another site cannot be reached");
            Ok(None)
        }
    }
}
