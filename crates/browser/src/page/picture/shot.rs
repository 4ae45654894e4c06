//! Takes the image.

use std::borrow::Cow;
use std::io::Cursor;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use chromiumoxide::cdp::browser_protocol::headless_experimental::{ScreenshotParams, ScreenshotParamsFormat};
use chromiumoxide::cdp::browser_protocol::page::{CaptureScreenshotFormat, CaptureScreenshotParams, Viewport as Clip};
use grabd_domain::capture::{CaptureSpec, Format, Scale, Viewport};
use grabd_domain::grabs::Failure;
use grabd_memory::{MemoryError, Reservation};
use serde::Deserialize;
use tokio::time::timeout;

use crate::cdp::{CallError, RawResult};
use crate::page::context::CaptureContext;
use crate::page::error::CaptureError;
use crate::page::load::clock::Clock;
use crate::page::load::frame_drawing::{Frames, OnDemand};
use crate::page::picture::area::CaptureArea;
use crate::page::picture::scaled::Scaled;
use crate::page::picture::scripts_disabled::ScriptsDisabled;
use crate::page::picture::smaller;
use crate::page::tab::Tab;

/// About a third of the size of the fast PNG, in about the same time.
pub(in crate::page) const JPEG_QUALITY: u8 = 80;

/// The number of frames that are requested for one image.
const MAX_FRAMES: u32 = 5;

/// The longest wait for the memory of an image. Others hold it while they take and store theirs.
const MEMORY_WAIT: Duration = Duration::from_secs(10);

/// Bytes of a file beside its pixels.
const HEADER_BYTES: u64 = 64 << 10;

/// Characters that are decoded at a time: a multiple of four.
const DECODE_CHUNK: usize = 16 << 10;

/// An encoded image and its size in pixels. Its memory is reserved for as long as the image exists.
pub(in crate::page) struct Shot {
    pub(in crate::page) image: Bytes,
    pub(in crate::page) width: u32,
    pub(in crate::page) height: u32,
    /// The memory for the attachments. None if the whole budget is smaller.
    pub(in crate::page) for_files: Option<Reservation>,
    /// False if frames of other sites are missing in it.
    pub(in crate::page) frames_painted: bool,
}

impl Shot {
    /// Whether the image shows nothing.
    pub(in crate::page) async fn has_one_colour(&self) -> bool {
        let image = self.image.clone();
        // An image without content is decoded to its end.
        let looked = tokio::task::spawn_blocking(move || grabd_pixels::has_one_colour(&image));
        looked.await.ok().flatten().unwrap_or(false)
    }
}

#[derive(Deserialize)]
struct ScreenshotResult<'a> {
    #[serde(borrow)]
    data: Cow<'a, str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FrameResult<'a> {
    #[serde(borrow)]
    screenshot_data: Option<Cow<'a, str>>,
}

/// Takes an image of the viewport, or of another part of the page, and reserves `for_files` bytes of memory for what is made
/// after it. Returns `None` while one document replaces another.
pub(in crate::page) async fn take(
    context: &CaptureContext<'_>,
    area: &CaptureArea,
    for_files: u64,
) -> Result<Option<Shot>, CaptureError> {
    // All memory of a capture is reserved at once: captures that wait for more while they hold some could wait for each
    // other.
    let most = max_file_bytes(max_size(context.spec, area.clip.as_ref())).min(context.limits.image_max_bytes);
    let memory = match context.step_images.take_memory() {
        // Reserved before the first image of a step.
        Some(kept) => kept,
        None => reserve(context, base64_bytes(most) + for_files + smaller::memory_bytes(context.spec)).await?,
    };
    take_in(context, area, (memory, for_files)).await
}

/// Reserves this much memory, or the whole budget if that is less. A capture does it once.
///
/// # Errors
/// If other captures take the memory for too long.
pub(in crate::page) async fn reserve(context: &CaptureContext<'_>, bytes: u64) -> Result<Reservation, CaptureError> {
    let limit = context.remaining().min(MEMORY_WAIT);
    context.limits.memory.reserve_at_most(bytes, limit).await.map_err(no_memory)
}

/// The same in `memory`, of which `for_files` bytes are left for what is made after it. A PNG is made smaller.
pub(in crate::page) async fn take_in(
    context: &CaptureContext<'_>,
    area: &CaptureArea,
    (memory, for_files): (Reservation, u64),
) -> Result<Option<Shot>, CaptureError> {
    let (spec, limits, limit) = (context.spec, &context.limits, context.remaining());
    // Scripts could set a frozen page in motion again.
    let frozen = match spec.freeze.stops_motion() && spec.javascript {
        true => Some(ScriptsDisabled::for_tab(context.tab).await?),
        false => None,
    };
    let mut frames_painted = true;
    let taken = match (&context.tab.frames, &area.clip) {
        // The image of a frame is not scaled (Chromium 156).
        (Frames::OnDemand(frames), None) if spec.scale == Scale::ONE => {
            from_frame(&context.clock, frames, spec, limit).await
        }
        (Frames::OnDemand(_) | Frames::Timer, clip) => {
            // A screenshot waits for frames: of the enlarged window, and of its content.
            let _fast = context.clock.draw_fast();
            // The browser briefly makes the window as large as the image, which the page must not notice.
            let disabled = match clip {
                Some(_) if spec.javascript && !spec.freeze.stops_motion() => {
                    Some(ScriptsDisabled::for_tab(context.tab).await?)
                }
                Some(_) | None => None,
            };
            let scaled = match clip {
                Some(clip) if area.unpainted_frames > 0 => Scaled::to_window(context, clip).await?,
                Some(_) | None => None,
            };
            frames_painted = area.unpainted_frames == 0 || scaled.is_some();
            let clip = scaled.as_ref().map(Scaled::clip).or_else(|| clip.clone());
            let taken = from_display(context.tab, spec, clip, limit).await;
            if let Some(scaled) = scaled {
                scaled.undo(context).await?;
            }
            ScriptsDisabled::end(disabled).await;
            taken
        }
    };
    ScriptsDisabled::end(frozen).await;
    match taken {
        Ok(Some(text)) => {
            context.tab.watch.set_image_taken();
            let (file, size) = decode(text, limits.image_max_bytes)?;
            let (file, memory) = match spec.format {
                Format::Png => {
                    let _resting = context.clock.rest();
                    smaller::png(file, size, memory, context.remaining()).await?
                }
                Format::Jpeg | Format::Webp => (file, memory),
            };
            Ok(Some(shot((file, size), (memory, for_files), frames_painted)))
        }
        Ok(None) => Ok(None),
        Err(TakeError::Call(CallError::TooLarge { bytes, .. })) => {
            let bytes = u64::try_from(bytes).unwrap_or(u64::MAX) / 4 * 3;
            Err(Failure::image_too_large(bytes, limits.image_max_bytes).into())
        }
        Err(TakeError::Call(error)) => Err(error.into()),
        Err(TakeError::Capture(error)) => Err(error),
    }
}

/// The error for an image for which there is no memory.
pub(in crate::page) fn no_memory(error: MemoryError) -> CaptureError {
    CaptureError::Lost(format!("no memory for the image: {error}"))
}

fn screenshot_data(answer: &RawResult) -> Option<Cow<'_, str>> {
    answer.parse::<ScreenshotResult<'_>>().ok().map(|taken| taken.data)
}

fn frame_data(answer: &RawResult) -> Option<Cow<'_, str>> {
    answer.parse::<FrameResult<'_>>().ok()?.screenshot_data
}

/// Width and height of the image in pixels, unless it is scaled down.
pub(in crate::page) fn max_size(spec: &CaptureSpec, clip: Option<&Clip>) -> (u32, u32) {
    area_size(spec.viewport, spec.scale, clip)
}

/// The same for a page that is shown in `viewport`.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an area of pixels is small and positive")]
pub(in crate::page) fn area_size(viewport: Viewport, scale: Scale, clip: Option<&Clip>) -> (u32, u32) {
    let (width, height) = match clip {
        Some(clip) => (clip.width, clip.height),
        None => (f64::from(viewport.width()), f64::from(viewport.height())),
    };
    let scaled = |side: f64| (side * scale.factor()).ceil() as u32;
    (scaled(width), scaled(height))
}

/// The size of an incompressible image.
pub(in crate::page) fn max_file_bytes((width, height): (u32, u32)) -> u64 {
    let pixels = u64::from(width).saturating_mul(height.into());
    pixels.saturating_mul(4).saturating_add(HEADER_BYTES)
}

/// The length of this many bytes in base64.
pub(in crate::page) const fn base64_bytes(bytes: u64) -> u64 {
    bytes.div_ceil(3).saturating_mul(4)
}

/// Why there is no image.
enum TakeError {
    /// The browser's call failed.
    Call(CallError),
    /// Anything else.
    Capture(CaptureError),
}

impl From<CallError> for TakeError {
    fn from(error: CallError) -> Self {
        Self::Call(error)
    }
}

/// Takes the image from the next frame, in base64.
async fn from_frame(
    clock: &Clock<'_>,
    frames: &OnDemand,
    spec: &CaptureSpec,
    limit: Duration,
) -> Result<Option<Vec<u8>>, TakeError> {
    let format = match spec.format {
        Format::Png => ScreenshotParamsFormat::Png,
        Format::Jpeg => ScreenshotParamsFormat::Jpeg,
        Format::Webp => ScreenshotParamsFormat::Webp,
    };
    let quality = quality(spec);
    let screenshot = ScreenshotParams { format: Some(format), quality, optimize_for_speed: Some(true) };
    for attempt in 1..=MAX_FRAMES {
        let drawn = clock.draw(frames, Some(screenshot.clone()));
        let drawn = timeout(limit, drawn).await.map_err(|_| CallError::Timeout("a frame".into()))?;
        let answer = match drawn {
            Err(CallError::Refused { message, .. }) if is_between_documents(&message) => return Ok(None),
            drawn => drawn?,
        };
        // Occasionally a frame has no image and the next one has.
        if let Some(data) = answer.into_part(frame_data).filter(|data| !data.is_empty()) {
            return Ok(Some(data));
        }
        tracing::debug!(attempt, "a frame had no image");
        clock.draw(frames, None).await?;
    }
    Err(TakeError::Capture(clock.not_drawn()))
}

fn quality(spec: &CaptureSpec) -> Option<i64> {
    match (spec.format, spec.quality) {
        (Format::Png, _) => None,
        (_, Some(quality)) => Some(quality.into()),
        (Format::Jpeg, None) => Some(JPEG_QUALITY.into()),
        (Format::Webp, None) => None,
    }
}

/// Takes a screenshot of what the browser displays, in base64.
async fn from_display(
    tab: &Tab,
    spec: &CaptureSpec,
    clip: Option<Clip>,
    limit: Duration,
) -> Result<Option<Vec<u8>>, TakeError> {
    let format = match spec.format {
        Format::Png => CaptureScreenshotFormat::Png,
        Format::Jpeg => CaptureScreenshotFormat::Jpeg,
        Format::Webp => CaptureScreenshotFormat::Webp,
    };
    let params = CaptureScreenshotParams {
        format: Some(format),
        quality: quality(spec),
        capture_beyond_viewport: clip.is_some().then_some(true),
        clip,
        from_surface: None,
        optimize_for_speed: Some(true),
    };
    let take = || tab.client.call_raw(limit, Some(&tab.session), &params);
    let mut answer = take().await;
    // The surface was not available; try again.
    if let Err(CallError::Refused { message, .. }) = &answer
        && is_temporary(message)
    {
        tracing::debug!(message, "taking the image again");
        answer = take().await;
    }
    match answer {
        Err(CallError::Refused { message, .. }) if is_between_documents(&message) => Ok(None),
        answer => {
            let data = answer?.into_part(screenshot_data);
            data.ok_or_else(|| TakeError::Capture(invalid_image("is missing"))).map(Some)
        }
    }
}

/// Returns true if the browser refused because one document is about to replace another.
pub(in crate::page) fn is_between_documents(message: &str) -> bool {
    message.contains("Not attached to an active page")
}

fn is_temporary(message: &str) -> bool {
    message.contains("Readback") || message.contains("Unable to capture")
}

/// Decodes a file of at most `max_bytes` bytes, in the buffer of its text. Returns it, and the size of the image.
fn decode(text: Vec<u8>, max_bytes: u64) -> Result<(Vec<u8>, (u32, u32)), CaptureError> {
    let file = decode_in_place(text).ok_or_else(|| invalid_image("is not base64"))?;
    if file.is_empty() {
        // The encoder returns nothing for an image that is too large.
        return Err(CaptureError::failed("The page is too large for a picture of this format."));
    }
    let bytes = u64::try_from(file.len()).unwrap_or(u64::MAX);
    if bytes > max_bytes {
        return Err(Failure::image_too_large(bytes, max_bytes).into());
    }
    let reader = image::ImageReader::new(Cursor::new(&file)).with_guessed_format();
    let size = reader.ok().and_then(|reader| reader.into_dimensions().ok());
    let (width, height) = size.ok_or_else(|| invalid_image("cannot be read"))?;
    grabd_pixels::check_size(width, height).map_err(|_| invalid_image("is larger than a capture can be"))?;
    Ok((file, (width, height)))
}

/// The image in `file`, with its memory.
///
/// `for_files` bytes of the reserved memory stay available for the attachments, or whatever the image leaves.
fn shot(
    (file, (width, height)): (Vec<u8>, (u32, u32)),
    (mut memory, for_files): (Reservation, u64),
    frames_painted: bool,
) -> Shot {
    let bytes = u64::try_from(file.len()).unwrap_or(u64::MAX);
    let for_files = memory.split(for_files.min(memory.bytes().saturating_sub(bytes)));
    memory.shrink_to(bytes);
    Shot { image: memory.attach(file), width, height, for_files, frames_painted }
}

/// Decodes base64 without a second buffer: the bytes replace the text, which is longer.
fn decode_in_place(mut text: Vec<u8>) -> Option<Vec<u8>> {
    let mut chunk = [0; DECODE_CHUNK];
    let (mut read, mut written) = (0, 0);
    while read < text.len() {
        let part = text.get(read..text.len().min(read + DECODE_CHUNK))?;
        let length = part.len();
        let is_last = read + length == text.len();
        chunk.get_mut(..length)?.copy_from_slice(part);
        let decoded = STANDARD.decode_slice(chunk.get(..length)?, text.get_mut(written..read + length)?).ok()?;
        if !is_last && decoded != DECODE_CHUNK / 4 * 3 {
            // Padding is allowed only at the end.
            return None;
        }
        read += length;
        written += decoded;
    }
    text.truncate(written);
    text.shrink_to_fit();
    Some(text)
}

fn invalid_image(what: &str) -> CaptureError {
    CaptureError::Lost(format!("the image {what}"))
}

#[cfg(test)]
mod tests {
    use grabd_domain::capture::CaptureRequest;
    use grabd_memory::MemoryBudget;

    use super::*;

    fn decode(text: &str, max_bytes: u64) -> Result<Shot, CaptureError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let memory = runtime.block_on(MemoryBudget::new(1 << 20).reserve(4096, MEMORY_WAIT)).unwrap();
        let decoded = super::decode(text.as_bytes().to_vec(), max_bytes)?;
        Ok(shot(decoded, (memory, 0), true))
    }

    #[test]
    fn decode_rejects_invalid_and_oversized_images() {
        assert!(matches!(decode("", 100), Err(CaptureError::Page(_))));
        assert!(matches!(decode("AAAA", 100), Err(CaptureError::Lost(_))));
        assert!(matches!(decode("?", 100), Err(CaptureError::Lost(_))));
        let mut png = Cursor::new(Vec::new());
        image::DynamicImage::new_rgb8(3, 2).write_to(&mut png, image::ImageFormat::Png).unwrap();
        let (text, bytes) = (STANDARD.encode(png.get_ref()), png.get_ref().len() as u64);
        let shot = decode(&text, bytes).unwrap();
        assert_eq!((shot.width, shot.height, &shot.image[..]), (3, 2, &png.get_ref()[..]));
        assert!(matches!(decode(&text, bytes - 1), Err(CaptureError::Page(failure)) if failure.message.contains("MB")));
    }

    #[test]
    fn text_is_decoded_in_its_own_buffer() {
        for length in [0, 1, 2, 3, 4, 5, DECODE_CHUNK / 4 * 3, DECODE_CHUNK / 4 * 3 + 1, 3 * DECODE_CHUNK + 2] {
            let bytes: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            assert_eq!(decode_in_place(STANDARD.encode(&bytes).into_bytes()), Some(bytes), "{length}");
        }
        let early_padding = format!("{}AA==AAAA", "A".repeat(DECODE_CHUNK - 4));
        assert_eq!(decode_in_place(early_padding.into_bytes()), None);
        assert_eq!(decode_in_place(b"AAA".to_vec()), None);
    }

    #[test]
    fn reserved_memory_is_that_of_an_incompressible_image() {
        let request =
            CaptureRequest { url: Some("https://example.com/".into()), scale: Some(2.0), ..CaptureRequest::default() };
        let spec = CaptureSpec::parse(&request).unwrap();
        assert_eq!(max_file_bytes(max_size(&spec, None)), 2560 * 1440 * 4 + HEADER_BYTES);
        let clip = Clip { x: 0.0, y: 0.0, width: 10.0, height: 20.0, scale: 1.0 };
        assert_eq!(max_file_bytes(max_size(&spec, Some(&clip))), 20 * 40 * 4 + HEADER_BYTES);
        assert_eq!(base64_bytes(4), 8);
    }
}
