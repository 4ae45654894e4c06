//! Prints the page as PDF.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chromiumoxide::cdp::browser_protocol::io::{CloseParams, ReadParams, StreamHandle};
use chromiumoxide::cdp::browser_protocol::page::{PrintToPdfParams, PrintToPdfTransferMode};
use grabd_domain::capture::{FileKind, Margins, PdfLayout};
use grabd_domain::grabs::RenderMetadata;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::cdp::CallError;
use crate::page::change::requested;
use crate::page::context::CaptureContext;
use crate::page::error::CaptureError;
use crate::page::findings::file_error::{not_made, too_large};
use crate::page::findings::page_text::{self, PageFacts};
use crate::page::picture::shown::{EXTRACT, limit};
use crate::page::script;

/// Bytes of a PDF that are read at a time.
const CHUNK_BYTES: u32 = 1 << 20;

/// The largest height of a single page in inches. Readers show no more than 200 (PDF 1.7, annex C).
const MAX_PAGE_INCHES: f64 = 196.0;

const PIXELS_PER_INCH: f64 = 96.0;

/// The paper, for the styles of the page.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PaperStyles {
    /// The margins at the top, on the right, at the bottom and on the left, as CSS has them. None: the page's own size and
    /// margins stay.
    margins: Option<String>,
    is_roll: bool,
    /// What is in the margins.
    rules: String,
}

#[derive(Deserialize)]
struct Height {
    height: f64,
}

#[derive(Deserialize)]
struct Today {
    date: String,
}

/// The HTML of headers and footers.
struct Templates {
    header: String,
    footer: String,
}

/// How headers and footers are printed.
#[derive(Default)]
struct PageTexts {
    /// By templates, which are the same on all pages.
    templates: Option<Templates>,
    /// By rules of a style sheet, where the first page has a line of its own. Empty: there are none.
    rules: String,
}

#[derive(Deserialize)]
struct PrintResult {
    stream: Option<StreamHandle>,
}

/// Prints the page, laid out as the caller asked for.
///
/// # Errors
/// If it cannot be printed in time, or is too large.
pub(super) async fn print(context: &CaptureContext<'_>, metadata: &RenderMetadata) -> Result<Vec<u8>, CaptureError> {
    let (client, session) = (&context.tab.client, Some(context.tab.session.as_str()));
    // Printing uses the styles that the caller asked for, not those for printing.
    client.call(session, requested::emulated_media(context.spec)).await?;
    let layout = &context.spec.pdf;
    let PageTexts { templates, rules } = page_texts(context, layout, metadata).await?;
    if !layout.css_page_size || !rules.is_empty() {
        set_page_styles(context, layout, rules).await?;
    }
    let content_height = match layout.single_page {
        true => Some(content_height(context, layout).await?),
        false => None,
    };
    let params = print_params(layout, content_height, templates);
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

/// Replaces sizes and margins of the page's styles by those of the layout, unless they are to be kept, and adds rules.
async fn set_page_styles(context: &CaptureContext<'_>, layout: &PdfLayout, rules: String) -> Result<(), CaptureError> {
    let Margins { top, right, bottom, left } = layout.margins();
    let margins = || [top, right, bottom, left].map(|side| format!("{}in", side.inches())).join(" ");
    let margins = (!layout.css_page_size).then(margins);
    let styles = PaperStyles { margins, is_roll: layout.single_page, rules };
    let done = script::call_in::<IgnoredAny>(context.tab, limit(context), EXTRACT, "paper", &styles).await?;
    done.map(|IgnoredAny| ()).ok_or_else(|| not_made(FileKind::Pdf))
}

/// The headers and footers.
async fn page_texts(
    context: &CaptureContext<'_>,
    layout: &PdfLayout,
    metadata: &RenderMetadata,
) -> Result<PageTexts, CaptureError> {
    if layout.header.is_none() && layout.footer.is_none() && !layout.has_first_page() {
        return Ok(PageTexts::default());
    }
    let today = script::call_in::<Today>(context.tab, limit(context), EXTRACT, "today", &()).await?;
    let Some(Today { date }) = today else { return Err(not_made(FileKind::Pdf)) };
    let facts = PageFacts {
        title: metadata.page.title.as_deref().unwrap_or_default(),
        url: metadata.final_url.as_deref().unwrap_or_default(),
        date: &date,
    };
    if layout.has_first_page() {
        return Ok(PageTexts { templates: None, rules: page_text::margin_rules(layout, &facts) });
    }
    let Margins { left, right, .. } = layout.margins();
    let sides = (left.inches(), right.inches());
    let templates = Templates {
        header: page_text::template(layout.header.as_ref(), sides, &facts),
        footer: page_text::template(layout.footer.as_ref(), sides, &facts),
    };
    Ok(PageTexts { templates: Some(templates), rules: String::new() })
}

/// The height of the content in CSS pixels, where it is as wide as the paper without its margins.
async fn content_height(context: &CaptureContext<'_>, layout: &PdfLayout) -> Result<f64, CaptureError> {
    let (client, session) = (&context.tab.client, Some(context.tab.session.as_str()));
    let Margins { left, right, .. } = layout.margins();
    let inches = layout.sheet_inches().0 - left.inches() - right.inches();
    let width = inches * PIXELS_PER_INCH / layout.scale.factor();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a sheet of paper is small")]
    let width = width.floor().max(1.0) as u32;
    // Lower than any page, whose height it would otherwise be.
    client.call(session, context.metrics(width, 1)).await?;
    let height = script::call_in::<Height>(context.tab, limit(context), EXTRACT, "height", &()).await?;
    height.map(|Height { height }| height).ok_or_else(|| not_made(FileKind::Pdf))
}

fn print_params(layout: &PdfLayout, content_height: Option<f64>, templates: Option<Templates>) -> PrintToPdfParams {
    let (width, height) = layout.sheet_inches();
    let Margins { top, right, bottom, left } = layout.margins();
    let scale = layout.scale.factor();
    let height = match content_height {
        // A pixel more, so that rounding makes no second page.
        Some(pixels) => {
            let content = (pixels * scale + 1.0) / PIXELS_PER_INCH;
            (content + top.inches() + bottom.inches()).clamp(1.0, MAX_PAGE_INCHES)
        }
        None => height,
    };
    let (header_template, footer_template) = match templates {
        Some(Templates { header, footer }) => (Some(header), Some(footer)),
        None => (None, None),
    };
    PrintToPdfParams {
        print_background: Some(layout.background),
        scale: Some(scale),
        paper_width: Some(width),
        paper_height: Some(height),
        margin_top: Some(top.inches()),
        margin_bottom: Some(bottom.inches()),
        margin_left: Some(left.inches()),
        margin_right: Some(right.inches()),
        display_header_footer: Some(header_template.is_some()),
        header_template,
        footer_template,
        page_ranges: layout.pages.clone(),
        prefer_css_page_size: Some(layout.css_page_size),
        generate_tagged_pdf: Some(layout.tagged),
        generate_document_outline: Some(layout.outline),
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
    use grabd_domain::capture::{CaptureRequest, CaptureSpec};

    use super::*;

    fn layout(json: &str) -> PdfLayout {
        let mut request = CaptureRequest { url: Some("https://example.com/".into()), ..CaptureRequest::default() };
        request.also = Some(vec!["pdf".to_owned()]);
        assert!(request.set("pdf", serde_json::from_str(json).unwrap()), "{json}");
        CaptureSpec::parse(&request).unwrap().pdf
    }

    #[test]
    fn single_page_is_as_high_as_its_content_and_its_margins() {
        let single = layout(r#"{"margin_mm": 0, "single_page": true}"#);
        let height = |layout: &PdfLayout, pixels| print_params(layout, Some(pixels), None).paper_height.unwrap();
        assert!((height(&single, 95.0) - 1.0).abs() < 1e-9 && (height(&single, 959.0) - 10.0).abs() < 1e-9);
        assert!((height(&single, 1e6) - MAX_PAGE_INCHES).abs() < 1e-9);
        let half = layout(r#"{"margin_mm": 0, "margin_top_mm": 25.4, "single_page": true, "scale": 0.5}"#);
        assert!((height(&half, 1918.0) - 11.0).abs() < 1e-9, "{}", height(&half, 1918.0));
    }

    #[test]
    fn paper_margins_and_scale_are_those_of_the_layout() {
        let wide = layout(r#"{"format": "letter", "landscape": true, "margin_mm": 25, "margin_left_mm": 12.7}"#);
        let params = print_params(&wide, None, None);
        assert_eq!((params.paper_width, params.paper_height, params.scale), (Some(11.0), Some(8.5), Some(1.0)));
        assert!((params.margin_right.unwrap() - 25.0 / 25.4).abs() < 1e-9);
        assert!((params.margin_left.unwrap() - 0.5).abs() < 1e-9);
        assert_eq!((params.display_header_footer, params.header_template), (Some(false), None));
        let templates = Templates { header: "a".into(), footer: "b".into() };
        let params = print_params(&layout(r#"{"tagged": false, "css_page_size": true}"#), None, Some(templates));
        assert_eq!((params.display_header_footer, params.footer_template.as_deref()), (Some(true), Some("b")));
        assert_eq!((params.generate_tagged_pdf, params.prefer_css_page_size), (Some(false), Some(true)));
    }
}
