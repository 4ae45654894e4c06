//! Makes PNG files smaller: the browser encodes them quickly, and large.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use grabd_domain::capture::{CaptureSpec, Format};
use grabd_memory::Reservation;
use grabd_pixels::{RECOMPRESSION_BYTES, is_recompressible, recompress, recompressed_bytes};

use crate::page::error::CaptureError;
use crate::page::picture::cancel::Cancel;

/// The longest time for one image. The largest files take about a third of it on a free processor.
const TIME_LIMIT: Duration = Duration::from_secs(1);

/// The memory that the work takes beside that of an image, without which small images would stay as they are.
pub(in crate::page) const fn memory_bytes(spec: &CaptureSpec) -> u64 {
    match spec.format {
        Format::Png => RECOMPRESSION_BYTES,
        Format::Jpeg | Format::Webp => 0,
    }
}

/// Returns a smaller file with the same pixels, or the same one: if there is no smaller one, and if it takes too much time, of
/// which `left` are left, or more than `memory`. The memory for what is made after the image is used, and free again afterwards.
///
/// # Errors
/// If the work cannot be done at all.
pub(in crate::page) async fn png(
    file: Vec<u8>,
    (width, height): (u32, u32),
    memory: Reservation,
    left: Duration,
) -> Result<(Vec<u8>, Reservation), CaptureError> {
    let bytes = u64::try_from(file.len()).unwrap_or(u64::MAX);
    let most = recompressed_bytes(width, height, memory.bytes().saturating_sub(bytes)).min(bytes.saturating_sub(1));
    if most == 0 || !is_recompressible(width, height, bytes) {
        return Ok((file, memory));
    }
    let cancel = Cancel::default();
    let is_cancelled = cancel.flag();
    // With the wait for a thread.
    let until = Instant::now() + TIME_LIMIT.min(left / 2);
    let work = tokio::task::spawn_blocking(move || {
        let is_stopped = || is_cancelled.load(Ordering::Relaxed) || Instant::now() >= until;
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let smaller = unless_it_panics(|| recompress(&file, most, &is_stopped));
        // The task owns the memory, since it continues for a moment when the capture is cancelled.
        (smaller.unwrap_or(file), memory)
    });
    work.await.map_err(|error| CaptureError::Lost(format!("the image was not made smaller: {error}")))
}

/// What the work returns. `None` if it panics: the browser's image is kept then, and the capture succeeds.
fn unless_it_panics<T>(work: impl FnOnce() -> Option<T>) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        tracing::error!("a PNG stays as the browser made it: the work to make it smaller panicked");
        None
    })
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use grabd_memory::MemoryBudget;
    use image::codecs::png::{CompressionType, FilterType, PngEncoder};
    use image::{Rgb, RgbImage};

    use super::*;

    /// A page as the browser encodes it.
    fn page() -> Vec<u8> {
        let image = RgbImage::from_fn(640, 480, |x, y| Rgb([if y % 20 < 9 && x % 7 < 3 { 30 } else { 250 }; 3]));
        let mut file = Cursor::new(Vec::new());
        let encoder = PngEncoder::new_with_quality(&mut file, CompressionType::Fast, FilterType::Up);
        image.write_with_encoder(encoder).unwrap();
        file.into_inner()
    }

    async fn smaller(reserved: u64, left: Duration) -> (Vec<u8>, u64) {
        let memory = MemoryBudget::new(64 << 20).reserve(reserved, Duration::from_secs(1)).await.unwrap();
        let (file, memory) = png(page(), (640, 480), memory, left).await.unwrap();
        (file, memory.bytes())
    }

    #[tokio::test]
    async fn image_has_the_same_pixels_in_fewer_bytes() {
        let (file, memory) = smaller(8 << 20, Duration::from_secs(60)).await;
        assert!(file.len() * 2 < page().len(), "{} of {}", file.len(), page().len());
        assert_eq!(memory, 8 << 20, "it is given back");
        let pixels = |file: &[u8]| image::load_from_memory(file).unwrap().to_rgba8();
        assert!(pixels(&file) == pixels(&page()));
    }

    #[tokio::test]
    async fn image_stays_as_it_is_without_memory_or_time() {
        assert_eq!(smaller(1 << 20, Duration::from_secs(60)).await.0, page());
        assert_eq!(smaller(8 << 20, Duration::ZERO).await.0, page());
    }

    #[test]
    fn panics_do_not_cost_the_image() {
        assert_eq!(unless_it_panics(|| Some(7)), Some(7));
        let panicking = || -> Option<u32> { [1].get(1).copied().or_else(|| panic!("a test")) };
        assert_eq!(unless_it_panics(panicking), None);
    }
}
