//! Makes the attachments after the image was taken: from the same document, in the same state.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use chromiumoxide::cdp::browser_protocol::io::{CloseParams, ReadParams, StreamHandle};
use chromiumoxide::cdp::browser_protocol::page::{PrintToPdfParams, PrintToPdfTransferMode, Viewport as Clip};
use grabd_domain::capture::{CaptureSpec, Content as PageContent, FileKind, PdfLayout};
use grabd_domain::grabs::{RenderMetadata, Warning};
use grabd_domain::render::CapturedFile;
use grabd_memory::Reservation;
use serde::{Deserialize, Serialize};

use crate::cdp::CallError;
use crate::page::change::requested;
use crate::page::context::CaptureContext;
use crate::page::error::CaptureError;
use crate::page::findings::report;
use crate::page::picture::shown::{EXTRACT, ImageSize, limit, shown_part};
use crate::page::script;

/// Bytes of a PDF that are read at a time.
const CHUNK_BYTES: u32 = 1 << 20;

/// The largest height of a single page in inches. Readers show no more than 200 (PDF 1.7, annex C).
const MAX_PAGE_INCHES: f64 = 196.0;

const PIXELS_PER_INCH: f64 = 96.0;
const MILLIMETRES_PER_INCH: f64 = 25.4;

#[derive(Serialize)]
struct Limit {
    most: u64,
}

/// The argument of the scripts that read text and Markdown.
#[derive(Serialize)]
struct Reading {
    most: u64,
    /// Whether only the main content is read, if there is one.
    main: bool,
}

/// What a script read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Content {
    content: Option<String>,
    #[serde(default)]
    is_cut: bool,
    #[serde(default)]
    is_too_large: bool,
    /// Whether the main content was asked for, and there is none.
    #[serde(default)]
    is_whole: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Links {
    links: Vec<Link>,
    is_cut: bool,
}

/// A link of the page.
#[derive(Serialize, Deserialize)]
struct Link {
    url: String,
    text: String,
    rel: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Elements {
    /// The form of each element is that of the file.
    elements: Vec<serde_json::Value>,
    is_cut: bool,
}

#[derive(Serialize)]
struct ElementsFile {
    image: ImageSize,
    elements: Vec<serde_json::Value>,
}

#[derive(Deserialize)]
struct Height {
    height: f64,
}

#[derive(Deserialize)]
struct PrintResult {
    stream: Option<StreamHandle>,
}

/// The memory that the files of a capture may take, beside that of the image: the largest message of the browser, and all
/// files.
pub(in crate::page) fn memory_bytes(spec: &CaptureSpec) -> u64 {
    let made = || spec.also.iter().filter(|kind| kind.is_of_page());
    let all: u64 = made().map(|kind| kind.max_bytes()).sum();
    // A text arrives as JSON, a PDF in chunks.
    let texts = made().filter(|kind| **kind != FileKind::Pdf);
    all + texts.map(|kind| 2 * kind.max_bytes()).max().unwrap_or(0)
}

/// Makes the files that were asked for, and adds warnings about those that were cut. The image shows `clip` of the page,
/// or the window.
///
/// # Errors
/// If one of them cannot be made.
pub(in crate::page) async fn files(
    context: &CaptureContext<'_>,
    (image, clip): (ImageSize, Option<&Clip>),
    memory: &mut Option<Reservation>,
    metadata: &mut RenderMetadata,
) -> Result<Vec<CapturedFile>, CaptureError> {
    let mut files = Vec::new();
    for kind in context.spec.also.iter().filter(|kind| kind.is_of_page()) {
        let (content, is_cut) = match kind {
            FileKind::Html => (html(context).await?, false),
            FileKind::Text => text(context, *kind, "text", metadata).await?,
            FileKind::Markdown => text(context, *kind, "markdown", metadata).await?,
            FileKind::Links => links(context).await?,
            FileKind::Elements => elements(context, image, clip).await?,
            FileKind::Pdf => (pdf(context).await?, false),
            FileKind::Report => (report::write(context, metadata), false),
            // The core makes them of images.
            FileKind::Marks | FileKind::Difference | FileKind::Thumbnail => return Err(not_made(*kind)),
        };
        let bytes = u64::try_from(content.len()).unwrap_or(u64::MAX);
        if bytes > kind.max_bytes() {
            return Err(too_large(*kind));
        }
        if is_cut {
            warn(metadata, Warning::AlsoTruncated);
        }
        let kept: Bytes = match memory.as_mut().and_then(|memory| memory.split(bytes)) {
            Some(own) => own.attach(content),
            // The whole budget is smaller than what the files may take, and this capture holds all of it.
            None => content.into(),
        };
        files.push(CapturedFile { kind: *kind, content: kept });
    }
    Ok(files)
}

/// Adds a warning once.
fn warn(metadata: &mut RenderMetadata, warning: Warning) {
    if !metadata.warnings.contains(&warning) {
        metadata.warnings.push(warning);
    }
}

fn too_large(kind: FileKind) -> CaptureError {
    let (name, megabytes) = (kind.as_str(), kind.max_bytes() >> 20);
    let advice = match kind {
        FileKind::Pdf => "Leave out backgrounds, or select `pages`.",
        FileKind::Html
        | FileKind::Text
        | FileKind::Markdown
        | FileKind::Links
        | FileKind::Elements
        | FileKind::Marks
        | FileKind::Report
        | FileKind::Difference
        | FileKind::Thumbnail => "Leave it out of `also`.",
    };
    CaptureError::failed(format!("The {name} of the page has more than {megabytes} MB. {advice}"))
}

fn not_made(kind: FileKind) -> CaptureError {
    CaptureError::failed(format!("The {} of the page could not be read.", kind.as_str()))
}

async fn html(context: &CaptureContext<'_>) -> Result<Vec<u8>, CaptureError> {
    let kind = FileKind::Html;
    let most = Limit { most: kind.max_bytes() };
    let read = script::call_in::<Content>(context.tab, limit(context), EXTRACT, "html", &most).await?;
    match read {
        Some(Content { is_too_large: true, .. }) => Err(too_large(kind)),
        Some(Content { content: Some(content), .. }) => Ok(content.into_bytes()),
        Some(Content { content: None, .. }) | None => Err(not_made(kind)),
    }
}

/// A text, which is cut at its maximum size.
async fn text(
    context: &CaptureContext<'_>,
    kind: FileKind,
    function: &str,
    metadata: &mut RenderMetadata,
) -> Result<(Vec<u8>, bool), CaptureError> {
    let reading = Reading { most: kind.max_bytes(), main: context.spec.content == PageContent::Main };
    let read = script::call_in::<Content>(context.tab, limit(context), EXTRACT, function, &reading).await?;
    let Some(Content { content: Some(mut content), is_cut, is_whole, .. }) = read else { return Err(not_made(kind)) };
    if is_whole {
        warn(metadata, Warning::NoMainContent);
    }
    let longest = content.floor_char_boundary(usize::try_from(kind.max_bytes()).unwrap_or(usize::MAX));
    let is_cut = is_cut || longest < content.len();
    content.truncate(longest);
    Ok((content.into_bytes(), is_cut))
}

async fn links(context: &CaptureContext<'_>) -> Result<(Vec<u8>, bool), CaptureError> {
    let read = script::call_in::<Links>(context.tab, limit(context), EXTRACT, "links", &()).await?;
    let Some(Links { links, is_cut }) = read else { return Err(not_made(FileKind::Links)) };
    let json = serde_json::to_vec(&links).map_err(|_| not_made(FileKind::Links))?;
    Ok((json, is_cut))
}

async fn elements(
    context: &CaptureContext<'_>,
    image: ImageSize,
    clip: Option<&Clip>,
) -> Result<(Vec<u8>, bool), CaptureError> {
    let not_made = || not_made(FileKind::Elements);
    let shown = shown_part(context, image, clip).await?;
    let read = script::call_in::<Elements>(context.tab, limit(context), EXTRACT, "elements", &shown).await?;
    let Some(Elements { elements, is_cut }) = read else { return Err(not_made()) };
    let json = serde_json::to_vec(&ElementsFile { image, elements }).map_err(|_| not_made())?;
    Ok((json, is_cut))
}

async fn pdf(context: &CaptureContext<'_>) -> Result<Vec<u8>, CaptureError> {
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
    use grabd_domain::capture::{CaptureRequest, Paper};

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

    #[test]
    fn memory_is_reserved_for_all_files() {
        let also = |kinds: &[&str]| {
            let also = Some(kinds.iter().map(|kind| (*kind).to_owned()).collect());
            let request =
                CaptureRequest { url: Some("https://example.com/".into()), also, ..CaptureRequest::default() };
            memory_bytes(&CaptureSpec::parse(&request).unwrap())
        };
        assert_eq!((also(&[]), also(&["pdf"])), (0, 32 << 20));
        assert_eq!(also(&["html", "text"]), (8 + 2 + 16) << 20);
    }
}
