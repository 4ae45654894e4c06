//! Taking the picture.

use std::borrow::Cow;
use std::io::Cursor;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chromiumoxide::cdp::browser_protocol::emulation::SetScriptExecutionDisabledParams;
use chromiumoxide::cdp::browser_protocol::page::{CaptureScreenshotFormat, CaptureScreenshotParams, Viewport as Clip};
use grabd_domain::capture::Format;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Ended, Tab};
use crate::cdp::CallError;

/// About a third of the quick PNG's bytes, in about the same time.
const JPEG_QUALITY: i64 = 80;

/// An encoded picture and its size in pixels.
pub(super) struct Shot {
    pub(super) image: Vec<u8>,
    pub(super) width: u32,
    pub(super) height: u32,
}

#[derive(Deserialize)]
struct Screenshot<'a> {
    #[serde(borrow)]
    data: Cow<'a, str>,
}

/// Takes the picture of the viewport, or of `clip` wherever on the page it lies. None while one document takes the place
/// of another.
pub(super) async fn take(
    tab: &Tab,
    format: Format,
    clip: Option<Clip>,
    limit: Duration,
) -> Result<Option<Shot>, Ended> {
    let (format, quality) = match format {
        Format::Png => (CaptureScreenshotFormat::Png, None),
        Format::Jpeg => (CaptureScreenshotFormat::Jpeg, Some(JPEG_QUALITY)),
        Format::Webp => (CaptureScreenshotFormat::Webp, None),
    };
    let params = CaptureScreenshotParams {
        format: Some(format),
        quality,
        capture_beyond_viewport: clip.is_some().then_some(true),
        clip,
        from_surface: None,
        optimize_for_speed: Some(true),
    };
    let take = || tab.client.call_raw(limit, Some(&tab.session), &params);
    // The browser makes the window as large as the picture for a moment, which the page is not to see.
    let _stopped = match &params.clip {
        Some(_) => Some(Stopped::scripts_of(tab).await?),
        None => None,
    };
    let mut answer = take().await;
    // The surface was not there at that moment; it is at the next.
    if let Err(CallError::Refused { message, .. }) = &answer
        && is_passing(message)
    {
        tracing::debug!(message, "the picture is taken again");
        answer = take().await;
    }
    match answer {
        Err(CallError::Refused { message, .. }) if is_between_documents(&message) => Ok(None),
        answer => read(&answer?).map(Some),
    }
}

/// While this is there, the page runs nothing; also when the picture is given up, the next document runs again.
struct Stopped<'a>(&'a Tab);

impl<'a> Stopped<'a> {
    /// Waits for the answer: this and the picture go different ways to the page.
    async fn scripts_of(tab: &'a Tab) -> Result<Self, CallError> {
        let stopped = Self(tab);
        tab.client.call(Some(&tab.session), SetScriptExecutionDisabledParams::new(true)).await?;
        Ok(stopped)
    }
}

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        self.0.client.tell(Some(&self.0.session), &SetScriptExecutionDisabledParams::new(false));
    }
}

/// Does the browser refuse because one document is about to take the place of another?
pub(super) fn is_between_documents(message: &str) -> bool {
    message.contains("Not attached to an active page")
}

fn is_passing(message: &str) -> bool {
    message.contains("Readback") || message.contains("Unable to capture")
}

fn read(answer: &RawValue) -> Result<Shot, Ended> {
    let broken = |what: &str| Ended::Lost(format!("the picture {what}"));
    let screenshot: Screenshot<'_> = serde_json::from_str(answer.get()).map_err(|_| broken("is missing"))?;
    let image = STANDARD.decode(screenshot.data.as_bytes()).map_err(|_| broken("is not base64"))?;
    if image.is_empty() {
        // The encoder gives up in silence on what it cannot hold.
        return Err(Ended::failed("The page is too large for a picture of this format."));
    }
    let reader = image::ImageReader::new(Cursor::new(&image)).with_guessed_format();
    let size = reader.ok().and_then(|reader| reader.into_dimensions().ok());
    let (width, height) = size.ok_or_else(|| broken("cannot be read"))?;
    Ok(Shot { image, width, height })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_readable_picture_is_one() {
        let read = |data: &str| read(&RawValue::from_string(format!(r#"{{"data":"{data}"}}"#)).unwrap());
        assert!(matches!(read(""), Err(Ended::Page(_))));
        assert!(matches!(read("AAAA"), Err(Ended::Lost(_))));
        assert!(matches!(read("?"), Err(Ended::Lost(_))));
        let mut png = Cursor::new(Vec::new());
        image::DynamicImage::new_rgb8(3, 2).write_to(&mut png, image::ImageFormat::Png).unwrap();
        let shot = read(&STANDARD.encode(png.into_inner())).unwrap();
        assert_eq!((shot.width, shot.height), (3, 2));
    }
}
