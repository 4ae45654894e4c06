//! Checks whether a browser still draws. One GPU process draws for all pages, and one page can keep it busy for
//! minutes, for example with an expensive filter, while the browser process still answers.

use std::time::Duration;

use chromiumoxide::cdp::browser_protocol::page::{CaptureScreenshotParams, Viewport};
use chromiumoxide::cdp::browser_protocol::target::{AttachToTargetParams, CloseTargetParams, CreateTargetParams};

use crate::cdp::{CallError, Client};

/// Drawing a pixel takes about 30 ms, and up to a second on an overloaded machine.
const LIMIT: Duration = Duration::from_secs(8);

/// Draws a pixel of a blank page. Returns false on a timeout only. A refusal counts as success: it concerns the blank
/// page, whose process may lack memory.
pub(super) async fn can_draw(client: &Client) -> bool {
    match client.closed().run_until_cancelled(tokio::time::timeout(LIMIT, draw(client))).await {
        None | Some(Ok(Ok(()) | Err(CallError::Closed))) => true,
        Some(Ok(Err(CallError::Timeout(_))) | Err(_)) => {
            tracing::warn!("a browser did not draw in time");
            false
        }
        Some(Ok(Err(
            error @ (CallError::Refused { .. } | CallError::InvalidResponse(_) | CallError::TooLarge { .. }),
        ))) => {
            tracing::debug!(%error, "a browser refused to draw");
            true
        }
    }
}

async fn draw(client: &Client) -> Result<(), CallError> {
    // In the default context, whose proxy refuses everything.
    let target = client.call(None, CreateTargetParams::new("about:blank")).await?.target_id;
    let attach = AttachToTargetParams { flatten: Some(true), ..AttachToTargetParams::new(target.clone()) };
    let attached = client.call(None, attach).await;
    let drawn = match attached {
        Ok(attached) => {
            let session: String = attached.session_id.into();
            let pixel = Viewport { x: 0.0, y: 0.0, width: 1.0, height: 1.0, scale: 1.0 };
            let pixel = CaptureScreenshotParams { clip: Some(pixel), ..CaptureScreenshotParams::default() };
            client.call_raw(LIMIT, Some(&session), &pixel).await.map(drop)
        }
        Err(error) => Err(error),
    };
    client.tell(None, &CloseTargetParams::new(target));
    drawn
}
