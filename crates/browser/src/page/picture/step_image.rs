//! Takes the images that steps ask for, while the page is used.

use std::time::Duration;

use grabd_domain::capture::CaptureSpec;
use grabd_domain::grabs::StepImage;
use grabd_domain::render::CapturedStepImage;
use serde_json::Value;
use tokio::time::Instant;

use crate::page::change::{freeze, hiding, requested};
use crate::page::context::CaptureContext;
use crate::page::error::CaptureError;
use crate::page::findings::extract;
use crate::page::load::watch::WatchState;
use crate::page::load::{navigate, settle};
use crate::page::picture::shot::{self, Shot};
use crate::page::picture::{area, looks, slices, smaller, viewports};

/// How long the end of a document is waited for that does not answer.
const REPLACEMENT_WAIT: Duration = Duration::from_millis(500);

/// The memory that the images of steps may take, and all that is made after the first of them.
fn memory_bytes(spec: &CaptureSpec, max_bytes: u64) -> u64 {
    let size = shot::max_size(spec, None);
    let largest = match shows_part(spec) {
        // Known only when the page is laid out.
        true => max_bytes,
        false => shot::max_file_bytes(size).min(max_bytes),
    };
    let count = u64::try_from(spec.secrets.image_names().len()).unwrap_or(u64::MAX);
    let images = largest.saturating_mul(count).min(max_bytes);
    let beside = viewports::memory_bytes(spec, max_bytes).saturating_add(slices::memory_bytes(spec, size, max_bytes));
    let files = extract::memory_bytes(spec).saturating_add(beside).saturating_add(smaller::memory_bytes(spec));
    shot::base64_bytes(largest).saturating_add(images).saturating_add(files)
}

/// Whether the page is laid out or scrolled for its images.
fn shows_part(spec: &CaptureSpec) -> bool {
    spec.full_page || spec.selector.is_some() || spec.clip.is_some()
}

/// Takes an image of what the image would show now, and keeps it under this name. The page is then as it was before. `step` is the
/// beginning of errors.
///
/// # Errors
/// If the document must not be captured, if the image cannot be taken, and if the images of all steps are too large.
pub(in crate::page) async fn take(context: &CaptureContext<'_>, name: &str, step: &str) -> Result<(), CaptureError> {
    settle::settle_again(context).await?;
    // A later step may lead away from a document that must not be captured.
    if let Some(document) = context.tab.watch.read(|seen| seen.document.clone()) {
        navigate::check_current(context, &document)?;
    }
    let Some(Shot { image, width, height, for_files, .. }) = shoot(context).await? else {
        // The caller continues with the document that replaces this one.
        let is_leaving = |seen: &mut WatchState| seen.pending_navigation().is_some().then_some(());
        context.tab.watch.until(Instant::now() + REPLACEMENT_WAIT, is_leaving).await;
        return Err(CaptureError::failed(format!("{step}: the page did not answer before its image was taken.")));
    };
    let most = context.limits.image_max_bytes;
    let bytes = u64::try_from(image.len()).unwrap_or(u64::MAX);
    if context.step_images.bytes().saturating_add(bytes) > most {
        let megabytes = most >> 20;
        return Err(CaptureError::failed(format!(
            "{step}: the images of the steps have more than {megabytes} MB together. Use `format` \"jpeg\", or fewer of these steps."
        )));
    }
    let image = CapturedStepImage { image: StepImage { name: name.to_owned(), width, height }, content: image };
    context.step_images.add(image, for_files);
    Ok(())
}

/// Takes the image, and undoes what was done to the page for it. `None` if the page does not answer, or is being replaced.
async fn shoot(context: &CaptureContext<'_>) -> Result<Option<Shot>, CaptureError> {
    if !looks::prepare(context).await? {
        return Ok(None);
    }
    freeze::apply(context, freeze::FIRST_PHASE).await?;
    // What was added to the page by the steps before.
    hiding::apply(context).await?;
    let is_arranged = shows_part(context.spec);
    if is_arranged {
        let _: Option<Value> = context.call_script("keepScroll", &()).await?;
    }
    let state = settle::read_state(context).await?.unwrap_or_default();
    let area = area::find(context, state).await?;
    let area = area::fit(context, area).await?;
    requested::enforce_changes(context).await?;
    let memory = match context.step_images.take_memory() {
        Some(kept) => kept,
        None => shot::reserve(context, memory_bytes(context.spec, context.limits.image_max_bytes)).await?,
    };
    if !looks::begin(context, area.clip.as_ref()).await? {
        return Ok(None);
    }
    // All that the image leaves of the memory is for what is made after it.
    let shot = shot::take_in(context, &area, (memory, u64::MAX)).await?;
    requested::check_changes(context).await?;
    if !looks::end(context).await? {
        return Ok(None);
    }
    if is_arranged {
        let _: Option<Value> = context.call_script("undoLayout", &()).await?;
        context.show_in(context.viewport()).await?;
        let _: Option<Value> = context.call_script("restoreScroll", &()).await?;
    }
    Ok(shot)
}

#[cfg(test)]
mod tests {
    use grabd_domain::capture::CaptureRequest;

    use super::*;

    #[test]
    fn memory_is_reserved_for_all_images_of_steps_and_what_follows() {
        let memory = |steps: &str, full_page| {
            let url = Some("https://example.com/".into());
            let mut request = CaptureRequest { url, full_page, ..CaptureRequest::default() };
            assert!(request.set("steps", serde_json::from_str(steps).unwrap()));
            memory_bytes(&CaptureSpec::parse(&request).unwrap(), 32 << 20)
        };
        let (one, work) = (shot::max_file_bytes((1280, 720)), grabd_pixels::RECOMPRESSION_BYTES);
        assert_eq!(memory(r#"[{"capture": "a"}]"#, None), shot::base64_bytes(one) + one + work);
        let two = r#"[{"capture": "a"}, {"press": "Tab"}, {"capture": "b"}]"#;
        assert_eq!(memory(two, None), shot::base64_bytes(one) + 2 * one + work);
        assert_eq!(memory(two, Some(true)), shot::base64_bytes(32 << 20) + (32 << 20) + work);
    }
}
