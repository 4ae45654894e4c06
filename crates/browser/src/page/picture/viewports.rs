//! Takes images of the same document in further viewports, after the image and the attachments.

use std::time::Duration;

use chromiumoxide::cdp::browser_protocol::page::Viewport as Clip;
use grabd_domain::capture::{CaptureSpec, Fit, Viewport};
use grabd_domain::grabs::ViewportSize;
use grabd_domain::render::CapturedViewport;
use grabd_memory::Reservation;
use serde_json::Value;

use crate::page::change::{conditions, freeze, hiding, requested};
use crate::page::context::CaptureContext;
use crate::page::error::CaptureError;
use crate::page::load::settle;
use crate::page::load::watch::Document;
use crate::page::picture::shot::{self, Shot};
use crate::page::picture::{area, looks, smaller};

/// The time that an image needs at least. A viewport is not begun with less.
const LEAST_TIME: Duration = Duration::from_secs(1);

/// The memory that the images in further viewports may take: all of them together, which have at most `max_bytes` as the
/// image has, the browser's message with the largest of them, and the work to make it smaller.
pub(in crate::page) fn memory_bytes(spec: &CaptureSpec, max_bytes: u64) -> u64 {
    if spec.viewports.is_empty() {
        return 0;
    }
    let size = |viewport: &Viewport| match spec.full_page || spec.selector.is_some() || spec.clip.is_some() {
        // Known only when the page is laid out.
        true => max_bytes,
        false => shot::max_file_bytes(shot::area_size(*viewport, spec.scale, None)).min(max_bytes),
    };
    let all = spec.viewports.iter().map(size).fold(0, u64::saturating_add).min(max_bytes);
    let largest = spec.viewports.iter().map(size).max().unwrap_or(0);
    all.saturating_add(shot::base64_bytes(largest)).saturating_add(smaller::memory_bytes(spec))
}

/// Takes the images, in the order of the request. The images of all viewports together have at most as many bytes as an
/// image.
///
/// # Errors
/// If one of them cannot be taken, also for lack of time, and if they are too large.
pub(in crate::page) async fn take(
    context: &CaptureContext<'_>,
    document: &Document,
    memory: &mut Option<Reservation>,
) -> Result<Vec<CapturedViewport>, CaptureError> {
    let mut images = Vec::new();
    let mut left = context.limits.image_max_bytes;
    for (phase, viewport) in (freeze::IMAGE_PHASE + 1..).zip(&context.spec.viewports) {
        if context.remaining() < LEAST_TIME {
            return Err(time_up(*viewport));
        }
        let taken = context.unless_replaced(document, take_one(context, (*viewport, phase), memory)).await;
        let taken = taken.map_err(|error| match error {
            // A call that had all of the time that was left.
            CaptureError::Page(_) if context.remaining().is_zero() => time_up(*viewport),
            error @ (CaptureError::Page(_)
            | CaptureError::Lost(_)
            | CaptureError::NeedsRealTime
            | CaptureError::NeedsTimer) => error,
        });
        let Some(shot) = taken? else { return Err(replaced(*viewport)) };
        let Shot { image, width, height, .. } = shot.ok_or_else(|| replaced(*viewport))?;
        left = left.checked_sub(u64::try_from(image.len()).unwrap_or(u64::MAX)).ok_or_else(|| too_large(context))?;
        let size = ViewportSize { viewport_width: viewport.width(), viewport_height: viewport.height(), width, height };
        images.push(CapturedViewport { size, content: image });
    }
    Ok(images)
}

/// Takes one image, in this phase of a page with a fixed clock. `None` while another document replaces this one.
async fn take_one(
    context: &CaptureContext<'_>,
    (viewport, phase): (Viewport, u32),
    memory: &mut Option<Reservation>,
) -> Result<Option<Shot>, CaptureError> {
    // As the page was before it was laid out for the image before.
    let _: Option<Value> = context.call_script("undoLayout", &()).await?;
    context.show_in(viewport).await?;
    settle::settle_again(context).await?;
    freeze::apply(context, phase).await?;
    if !conditions::check(context).await? {
        return Ok(None);
    }
    // What was added to the page for this viewport.
    hiding::apply(context).await?;
    let state = settle::read_state(context).await?.unwrap_or_default();
    let area = area::find(context, state).await?;
    let area = area::fit(context, area).await?;
    requested::enforce_changes(context).await?;
    let reserved = match memory.take() {
        Some(reserved) => reserved,
        // The whole budget is smaller than what the capture may take, and this capture holds all of it.
        None => context.limits.memory.reserve(0, Duration::ZERO).await.map_err(shot::no_memory)?,
    };
    if !looks::begin(context, area.clip.as_ref()).await? {
        return Ok(None);
    }
    // All that the image leaves of the memory is for the next one.
    let mut shot = shot::take_in(context, &area, (reserved, u64::MAX)).await?;
    *memory = shot.as_mut().and_then(|shot| shot.for_files.take());
    requested::check_changes(context).await?;
    if !looks::end(context).await? {
        return Ok(None);
    }
    if context.spec.conditions.fail_if_blank
        && let Some(shot) = &shot
        && shot.has_one_colour().await
    {
        return Err(conditions::blank_failure());
    }
    match shot {
        Some(shot) if !has_size(&shot, viewport, context.spec, area.clip.as_ref()) => {
            let Shot { width, height, .. } = shot;
            Err(CaptureError::Lost(format!("the image in {viewport} has {width} x {height} pixels")))
        }
        shot => Ok(shot),
    }
}

/// Whether an image of the whole window has the size of this viewport, and not that of another one.
fn has_size(shot: &Shot, viewport: Viewport, spec: &CaptureSpec, clip: Option<&Clip>) -> bool {
    clip.is_some()
        || spec.fit != Fit::default()
        || (shot.width, shot.height) == shot::area_size(viewport, spec.scale, None)
}

fn time_up(viewport: Viewport) -> CaptureError {
    CaptureError::failed(format!("The time of the capture was up before the page was captured in {viewport} pixels."))
}

fn too_large(context: &CaptureContext<'_>) -> CaptureError {
    let megabytes = context.limits.image_max_bytes >> 20;
    CaptureError::failed(format!(
        "The images in the further viewports have more than {megabytes} MB together. Use `format` \"jpeg\", or fewer \
         viewports."
    ))
}

fn replaced(viewport: Viewport) -> CaptureError {
    CaptureError::failed(format!("The page left for another one when it was shown in {viewport} pixels."))
}
