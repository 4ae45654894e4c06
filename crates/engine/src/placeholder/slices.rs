//! The slices of a placeholder.

use std::sync::atomic::AtomicBool;

use bytes::Bytes;
use grabd_domain::capture::Format;
use grabd_domain::grabs::SlicePlace;
use grabd_domain::render::CapturedSlice;
use grabd_pixels::{Cut, Error, Slice};

use super::encode::JPEG_QUALITY;

/// The word in the drawing, which is the heading of all slices but the first.
const HEADING: &str = "TEST";

/// Far more than any placeholder has.
const MAX_BYTES: usize = 32 << 20;

/// The memory that cutting an image of this size takes, with its slices.
pub(super) fn memory_bytes((width, height): (u32, u32), slice_height: u32, format: Format, image: &Bytes) -> u64 {
    let bytes = u64::try_from(image.len()).unwrap_or(u64::MAX);
    grabd_pixels::memory_bytes(width, height, slice_height, pixel_format(format), bytes).saturating_add(2 * bytes)
}

/// Cuts the image of a placeholder.
///
/// # Errors
/// If the image cannot be decoded.
pub(super) fn cut(image: &[u8], slice_height: u32, format: Format) -> Result<Vec<CapturedSlice>, Error> {
    let is_cancelled = AtomicBool::new(false);
    let how = Cut {
        format: pixel_format(format),
        quality: JPEG_QUALITY,
        slice_height,
        max_bytes: MAX_BYTES,
        is_cancelled: &is_cancelled,
    };
    let captured = |Slice { rows, file }| CapturedSlice {
        place: SlicePlace::new(rows.y, rows.height, (rows.y > 0).then_some(HEADING)),
        content: file.into(),
    };
    Ok(grabd_pixels::cut(image, &how)?.into_iter().map(captured).collect())
}

/// The format of an image, as work on pixels takes it.
pub(crate) const fn pixel_format(format: Format) -> grabd_pixels::Format {
    match format {
        Format::Png => grabd_pixels::Format::Png,
        Format::Jpeg => grabd_pixels::Format::Jpeg,
        Format::Webp => grabd_pixels::Format::Webp,
    }
}
