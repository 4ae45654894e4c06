//! Stops everything that moves before the image is taken.

use std::time::Duration;

use chromiumoxide::cdp::browser_protocol::page::{AddScriptToEvaluateOnNewDocumentParams, GetResourceTreeParams};
use chromiumoxide::cdp::js_protocol::runtime::EvaluateParams;
use grabd_domain::capture::Freeze;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::Instant;

use crate::cdp::CallError;
use crate::page::change::fixed_clock;
use crate::page::context::CaptureContext;
use crate::page::error::CaptureError;
use crate::page::script::millis;

/// The types of images that may be animated.
const ANIMATED_TYPES: [&str; 3] = ["image/gif", "image/webp", "image/apng"];

/// The most images that are stopped, and the most bytes of a URL.
const MAX_IMAGES: usize = 500;
const MAX_URL_BYTES: usize = 2048;

/// The time for the list of images.
const LIST_LIMIT: Duration = Duration::from_secs(2);

/// The longest wait until the fixed clocks of a page stand at the end of a phase. Each frame of an animation takes time.
const CLOCK_LIMIT: Duration = Duration::from_secs(8);

/// The part of it for one worker, which may be computing.
const WORKER_LIMIT: Duration = Duration::from_secs(2);

/// The part of the time of the capture that this wait may take at most.
const CLOCK_SHARE: u32 = 2;

/// The phase of a page before it is laid out for its image, and after that. Further viewports have later ones.
pub(in crate::page) const FIRST_PHASE: u32 = 0;
pub(in crate::page) const IMAGE_PHASE: u32 = 1;

#[derive(Serialize)]
struct FreezeArguments<'a> {
    images: &'a [String],
    /// Whether videos that are about to play are stopped as if they had begun.
    starting: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StandArguments {
    phase: u32,
    budget_ms: u64,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResourceTree {
    frame_tree: FrameResources,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct FrameResources {
    resources: Vec<Resource>,
    child_frames: Vec<FrameResources>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resource {
    url: String,
    mime_type: String,
}

/// Gives the page a fixed clock and fixed random numbers, if the caller requested it. Called before the navigation.
///
/// # Errors
/// If the browser does not answer.
pub(in crate::page) async fn prepare(context: &CaptureContext<'_>) -> Result<(), CaptureError> {
    if let Some(program) = fixed_clock::program(context.spec) {
        let script = AddScriptToEvaluateOnNewDocumentParams::new(program);
        context.tab.client.call(Some(&context.tab.session), script).await?;
    }
    Ok(())
}

/// Stops animations, videos and animated images, and hides carets, if the caller requested it. Before, a fixed clock goes on to
/// the end of this phase.
pub(in crate::page) async fn apply(context: &CaptureContext<'_>, phase: u32) -> Result<(), CaptureError> {
    match context.spec.freeze {
        Freeze::Nothing => return Ok(()),
        Freeze::Motion => {}
        Freeze::All => stand_still(context, phase).await?,
    }
    let limit = LIST_LIMIT.min(context.remaining());
    let listed = context.tab.client.call_as(limit, Some(&context.tab.session), GetResourceTreeParams::default()).await;
    let tree: ResourceTree = match listed {
        // The document was replaced, which the caller notices by itself.
        Err(CallError::Refused { .. }) => return Ok(()),
        listed => listed?,
    };
    let images = animated_images(tree);
    let _fast = context.clock.draw_fast();
    let arguments = FreezeArguments { images: &images, starting: context.spec.freeze == Freeze::All };
    let _: Option<Value> = context.call_script("freeze", &arguments).await?;
    Ok(())
}

/// Waits until the fixed clocks of the page, of its frames and of its workers stand at the end of the phase, for a limited time.
async fn stand_still(context: &CaptureContext<'_>, phase: u32) -> Result<(), CaptureError> {
    if !context.spec.javascript {
        return Ok(());
    }
    let _fast = context.clock.draw_fast();
    let until = Instant::now() + CLOCK_LIMIT.min(context.remaining() / CLOCK_SHARE);
    page_stands(context, phase, until).await?;
    let workers = context.tab.watch.worker_sessions();
    for session in &workers {
        let limit = until.saturating_duration_since(Instant::now()).min(WORKER_LIMIT);
        let stand = EvaluateParams {
            await_promise: Some(true),
            silent: Some(true),
            ..EvaluateParams::new(fixed_clock::stand_in_worker(phase))
        };
        if let Err(error) = context.tab.client.call_as::<_, Value>(limit, Some(session), stand).await {
            tracing::debug!(%error, "the clock of a worker does not stand");
        }
    }
    if !workers.is_empty() {
        // What they have sent to the page.
        page_stands(context, phase, until).await?;
    }
    Ok(())
}

async fn page_stands(context: &CaptureContext<'_>, phase: u32, until: Instant) -> Result<(), CaptureError> {
    let budget_ms = millis(until.saturating_duration_since(Instant::now()));
    let _: Option<Value> = context.call_script("standStill", &StandArguments { phase, budget_ms }).await?;
    Ok(())
}

fn animated_images(tree: ResourceTree) -> Vec<String> {
    let is_animated = |resource: &Resource| {
        ANIMATED_TYPES.contains(&resource.mime_type.as_str()) && resource.url.len() <= MAX_URL_BYTES
    };
    let (mut images, mut frames) = (Vec::new(), vec![tree.frame_tree]);
    while let Some(FrameResources { resources, child_frames }) = frames.pop() {
        images.extend(resources.into_iter().filter(is_animated).map(|resource| resource.url));
        frames.extend(child_frames);
    }
    images.truncate(MAX_IMAGES);
    images
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_images_that_may_be_animated_are_listed() {
        let resource = |url: &str, mime_type: &str| Resource { url: url.to_owned(), mime_type: mime_type.to_owned() };
        let resources = vec![
            resource("a", "image/gif"),
            resource("b", "image/png"),
            resource("c", "image/webp"),
            resource(&"d".repeat(MAX_URL_BYTES + 1), "image/gif"),
        ];
        let inner = FrameResources { resources: vec![resource("e", "image/apng")], ..FrameResources::default() };
        let tree = ResourceTree { frame_tree: FrameResources { resources, child_frames: vec![inner] } };
        assert_eq!(animated_images(tree), ["a", "c", "e"]);
        let resources = (0..=MAX_IMAGES).map(|_| resource("a", "image/gif")).collect();
        let tree = ResourceTree { frame_tree: FrameResources { resources, ..FrameResources::default() } };
        assert_eq!(animated_images(tree).len(), MAX_IMAGES);
    }
}
