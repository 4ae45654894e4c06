//! Can a browser still draw? One process of it draws for all pages, and one page can keep that process busy for minutes,
//! with a filter that takes long to compute, say. The browser itself goes on answering then.

use std::time::Duration;

use chromiumoxide::cdp::browser_protocol::page::{CaptureScreenshotParams, Viewport};
use chromiumoxide::cdp::browser_protocol::target::{AttachToTargetParams, CloseTargetParams, CreateTargetParams};

use crate::cdp::{CallError, Client};

/// A pixel takes some thirty milliseconds; machines with far more to do than they can take a second.
const LIMIT: Duration = Duration::from_secs(8);

/// Draws a pixel of a blank page of its own: false when there is no answer in time. A refusal is an answer too, and says
/// more about the blank page, whose process may be the one that the machine's memory did not suffice for.
pub(super) async fn succeeds(client: &Client) -> bool {
    match client.closed().run_until_cancelled(tokio::time::timeout(LIMIT, draw(client))).await {
        None | Some(Ok(Ok(()) | Err(CallError::Closed))) => true,
        Some(Ok(Err(CallError::Timeout(_))) | Err(_)) => {
            tracing::warn!("a browser does not draw in time");
            false
        }
        Some(Ok(Err(error @ (CallError::Refused { .. } | CallError::Unreadable(_))))) => {
            tracing::debug!(%error, "a browser refuses to draw");
            true
        }
    }
}

async fn draw(client: &Client) -> Result<(), CallError> {
    // Outside all contexts, behind the proxy that refuses everything.
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
