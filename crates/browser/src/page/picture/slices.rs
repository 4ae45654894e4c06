//! Cuts the image into slices: from its rows, so that they show what the image shows.

use bytes::Bytes;
use chromiumoxide::cdp::browser_protocol::page::Viewport as Clip;
use grabd_domain::capture::{CaptureSpec, Format};
use grabd_domain::grabs::SlicePlace;
use grabd_domain::render::CapturedSlice;
use grabd_memory::Reservation;
use grabd_pixels::{Cut, Error, Slice};
use serde::Deserialize;

use crate::page::context::CaptureContext;
use crate::page::error::CaptureError;
use crate::page::picture::cancel::Cancel;
use crate::page::picture::shot;
use crate::page::picture::shown::{EXTRACT, ImageSize, limit, shown_part};
use crate::page::script;

#[derive(Deserialize)]
struct Headings {
    headings: Vec<Heading>,
}

/// A visible heading of the page.
#[derive(Deserialize)]
struct Heading {
    /// The row of the image in which it begins. It is negative above the image.
    y: f64,
    text: String,
}

/// The memory that the slices of an image of this size may take, and cutting it. The image has at most `max_bytes`, as
/// all slices together.
pub(in crate::page) fn memory_bytes(spec: &CaptureSpec, (width, height): (u32, u32), max_bytes: u64) -> u64 {
    let Some(slice_height) = spec.slice_height else { return 0 };
    let most = shot::max_file_bytes((width, height)).min(max_bytes);
    grabd_pixels::memory_bytes(width, height, slice_height, to_format(spec.format), most).saturating_add(most)
}

/// Cuts the image into slices, from top to bottom. None if they were not asked for.
///
/// # Errors
/// If the slices are too large.
pub(in crate::page) async fn make(
    context: &CaptureContext<'_>,
    image: &Bytes,
    (size, clip): (ImageSize, Option<&Clip>),
    memory: &mut Option<Reservation>,
) -> Result<Vec<CapturedSlice>, CaptureError> {
    let Some(slice_height) = context.spec.slice_height else { return Ok(Vec::new()) };
    // Before the image is cut, which takes time.
    let shown = shown_part(context, size, clip).await?;
    // A heading could contain what is masked.
    let read = match context.spec.mask.is_empty() {
        true => script::call_in::<Headings>(context.tab, limit(context), EXTRACT, "headings", &shown).await?,
        false => None,
    };
    let headings = read.map_or(Vec::new(), |Headings { headings }| headings);

    let max_bytes = context.limits.image_max_bytes;
    let reserved = memory_bytes(context.spec, (size.width, size.height), max_bytes);
    let reserved = memory.as_mut().and_then(|memory| memory.split(reserved.min(memory.bytes())));
    let quality = context.spec.quality.unwrap_or(shot::JPEG_QUALITY);
    let format = to_format(context.spec.format);
    let cancel = Cancel::default();
    let (image, is_cancelled) = (image.clone(), cancel.flag());
    let cut = tokio::task::spawn_blocking(move || {
        let max_bytes = usize::try_from(max_bytes).unwrap_or(usize::MAX);
        let how = Cut { format, quality, slice_height, max_bytes, is_cancelled: &is_cancelled };
        // The task owns the memory, since it continues for a moment when the capture is cancelled.
        (grabd_pixels::cut(&image, &how), reserved)
    });
    let (slices, mut reserved) = cut.await.map_err(|error| CaptureError::Lost(format!("no slices: {error}")))?;
    let slices = slices.map_err(|error| match error {
        Error::TooLarge => {
            let megabytes = max_bytes >> 20;
            CaptureError::failed(format!(
                "The slices of the image have more than {megabytes} MB. Use `format` \"jpeg\", or a smaller image."
            ))
        }
        Error::Undecodable(_) | Error::NotEncoded(_) | Error::TooHigh | Error::Cancelled => {
            CaptureError::Lost(format!("no slices: {error}"))
        }
    })?;
    let captured = |Slice { rows, file }: Slice| {
        let place = SlicePlace::new(rows.y, rows.height, heading_of(&headings, rows.y));
        let bytes = u64::try_from(file.len()).unwrap_or(u64::MAX);
        let content = match reserved.as_mut().and_then(|reserved| reserved.split(bytes)) {
            Some(own) => own.attach(file),
            // The whole budget is smaller than what a capture may take, and this capture holds all of it.
            None => file.into(),
        };
        CapturedSlice { place, content }
    };
    Ok(slices.into_iter().map(captured).collect())
}

/// The heading that a row belongs to: the last one that begins in it or above.
fn heading_of(headings: &[Heading], row: u32) -> Option<&str> {
    let above = headings.iter().filter(|heading| heading.y <= f64::from(row));
    // Of several in the same row, the last one of the document.
    above.max_by(|a, b| a.y.total_cmp(&b.y)).map(|heading| heading.text.as_str())
}

const fn to_format(format: Format) -> grabd_pixels::Format {
    match format {
        Format::Png => grabd_pixels::Format::Png,
        Format::Jpeg => grabd_pixels::Format::Jpeg,
        Format::Webp => grabd_pixels::Format::Webp,
    }
}

#[cfg(test)]
mod tests {
    use grabd_domain::capture::CaptureRequest;

    use super::*;

    #[test]
    fn row_belongs_to_the_last_heading_that_begins_above() {
        let heading = |y: f64, text: &str| Heading { y, text: text.to_owned() };
        let headings =
            [heading(300.0, "lower"), heading(-20.0, "above"), heading(100.0, "upper"), heading(100.0, "beside")];
        for (row, expected) in [(0, "above"), (99, "above"), (100, "beside"), (299, "beside"), (5000, "lower")] {
            assert_eq!(heading_of(&headings, row), Some(expected), "{row}");
        }
        assert_eq!((heading_of(&headings[..1], 0), heading_of(&[], 9)), (None, None));
    }

    #[test]
    fn memory_is_reserved_only_for_slices_that_were_asked_for() {
        let memory = |slice_height, format: &str| {
            let (url, format) = (Some("https://example.com/".into()), Some(format.to_owned()));
            let request = CaptureRequest { url, slice_height, format, ..CaptureRequest::default() };
            memory_bytes(&CaptureSpec::parse(&request).unwrap(), (1280, 10_000), 32 << 20)
        };
        assert_eq!(memory(None, "png"), 0);
        assert!((32 << 20..40 << 20).contains(&memory(Some(2000), "png")), "a PNG is not decoded as a whole");
        assert!(memory(Some(2000), "jpeg") >= 64 << 20);
    }
}
