//! Prints the page as PDF.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chromiumoxide::cdp::browser_protocol::io::{CloseParams, ReadParams, StreamHandle};
use chromiumoxide::cdp::browser_protocol::page::{PrintToPdfParams, PrintToPdfTransferMode};
use grabd_domain::capture::{FileKind, PdfLayout};
use serde::Deserialize;

use crate::cdp::CallError;
use crate::page::change::requested;
use crate::page::context::CaptureContext;
use crate::page::error::CaptureError;
use crate::page::findings::file_error::{not_made, too_large};
use crate::page::picture::shown::{EXTRACT, limit};
use crate::page::script;

/// Bytes of a PDF that are read at a time.
const CHUNK_BYTES: u32 = 1 << 20;

/// The largest height of a single page in inches. Readers show no more than 200 (PDF 1.7, annex C).
const MAX_PAGE_INCHES: f64 = 196.0;

const PIXELS_PER_INCH: f64 = 96.0;
const MILLIMETRES_PER_INCH: f64 = 25.4;

#[derive(Deserialize)]
struct Height {
    height: f64,
}

#[derive(Deserialize)]
struct PrintResult {
    stream: Option<StreamHandle>,
}

/// Prints the page, laid out as the caller asked for.
///
/// # Errors
/// If it cannot be printed in time, or is too large.
pub(super) async fn print(context: &CaptureContext<'_>) -> Result<Vec<u8>, CaptureError> {
    let (client, session) = (&context.tab.client, Some(context.tab.session.as_str()));
    // Printing uses the styles that the caller asked for, not those for printing.
    client.call(session, requested::emulated_media(context.spec)).await?;
    let layout = &context.spec.pdf;
    let content_height = match layout.single_page {
        true => Some(content_height(context, layout).await?),
        false => None,
    };
    let params = print_params(layout, content_height);
    let printed: PrintResult = match client.call_as(limit(context), session, params).await {
        Err(CallError::Refused { message, .. }) if message.contains("Page range") => {
            return Err(CaptureError::failed("The PDF has no such `pages`."));
        }
        Err(CallError::Refused { .. }) => return Err(CaptureError::failed("The page could not be printed as PDF.")),
        Err(CallError::Timeout(_)) => return Err(CaptureError::failed("The page could not be printed in time.")),
        printed => printed?,
    };
    let stream = printed.stream.ok_or_else(|| not_made(FileKind::Pdf))?;
    let read = read_stream(context, &stream).await;
    client.tell(session, &CloseParams::new(stream));
    read
}

/// Width and height of the paper in inches.
fn paper_inches(layout: &PdfLayout) -> (f64, f64) {
    let (width, height) = layout.paper.inches();
    if layout.landscape { (height, width) } else { (width, height) }
}

fn margin_inches(layout: &PdfLayout) -> f64 {
    f64::from(layout.margin_mm) / MILLIMETRES_PER_INCH
}

/// The height of the content in CSS pixels, where it is as wide as the paper without its margins.
async fn content_height(context: &CaptureContext<'_>, layout: &PdfLayout) -> Result<f64, CaptureError> {
    let (client, session) = (&context.tab.client, Some(context.tab.session.as_str()));
    let width = (paper_inches(layout).0 - 2.0 * margin_inches(layout)) * PIXELS_PER_INCH;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a sheet of paper is small")]
    let width = width.floor().max(1.0) as u32;
    // Lower than any page, whose height it would otherwise be.
    client.call(session, context.metrics(width, 1)).await?;
    let height = script::call_in::<Height>(context.tab, limit(context), EXTRACT, "height", &()).await?;
    height.map(|Height { height }| height).ok_or_else(|| not_made(FileKind::Pdf))
}

fn print_params(layout: &PdfLayout, content_height: Option<f64>) -> PrintToPdfParams {
    let (width, height) = paper_inches(layout);
    let margin = margin_inches(layout);
    let height = match content_height {
        // A pixel more, so that rounding makes no second page.
        Some(pixels) => ((pixels + 1.0) / PIXELS_PER_INCH + 2.0 * margin).clamp(1.0, MAX_PAGE_INCHES),
        None => height,
    };
    PrintToPdfParams {
        print_background: Some(layout.background),
        paper_width: Some(width),
        paper_height: Some(height),
        margin_top: Some(margin),
        margin_bottom: Some(margin),
        margin_left: Some(margin),
        margin_right: Some(margin),
        page_ranges: layout.pages.clone(),
        prefer_css_page_size: Some(false),
        transfer_mode: Some(PrintToPdfTransferMode::ReturnAsStream),
        ..PrintToPdfParams::default()
    }
}

async fn read_stream(context: &CaptureContext<'_>, stream: &StreamHandle) -> Result<Vec<u8>, CaptureError> {
    let (client, session) = (&context.tab.client, Some(context.tab.session.as_str()));
    let most = usize::try_from(FileKind::Pdf.max_bytes()).unwrap_or(usize::MAX);
    let mut content = Vec::new();
    loop {
        let next = ReadParams { size: Some(CHUNK_BYTES.into()), ..ReadParams::new(stream.clone()) };
        let part = client.call_within(limit(context), session, next).await?;
        match part.base64_encoded {
            Some(true) => {
                let decoded = STANDARD.decode_vec(&part.data, &mut content);
                decoded.map_err(|_| not_made(FileKind::Pdf))?;
            }
            Some(false) | None => content.extend_from_slice(part.data.as_bytes()),
        }
        if content.len() > most {
            return Err(too_large(FileKind::Pdf));
        }
        if part.eof {
            return match content.starts_with(b"%PDF-") {
                true => Ok(content),
                false => Err(not_made(FileKind::Pdf)),
            };
        }
        if part.data.is_empty() {
            // A stream that neither ends nor has data would be read for ever.
            return Err(not_made(FileKind::Pdf));
        }
    }
}

#[cfg(test)]
mod tests {
    use grabd_domain::capture::Paper;

    use super::*;

    #[test]
    fn single_page_is_as_high_as_its_content_and_its_margins() {
        let layout = PdfLayout { margin_mm: 0, single_page: true, ..PdfLayout::default() };
        let height = |pixels| print_params(&layout, Some(pixels)).paper_height.unwrap();
        assert!((height(95.0) - 1.0).abs() < 1e-9 && (height(959.0) - 10.0).abs() < 1e-9);
        assert!((height(1e6) - MAX_PAGE_INCHES).abs() < 1e-9);
        let wide = PdfLayout { paper: Paper::Letter, landscape: true, margin_mm: 25, ..PdfLayout::default() };
        let params = print_params(&wide, None);
        assert_eq!((params.paper_width, params.paper_height), (Some(11.0), Some(8.5)));
        assert!((params.margin_left.unwrap() - 25.0 / 25.4).abs() < 1e-9);
    }
}
