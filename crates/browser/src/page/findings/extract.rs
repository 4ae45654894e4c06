//! Makes the attachments after the image was taken: from the same document, in the same state.

use bytes::Bytes;
use chromiumoxide::cdp::browser_protocol::page::Viewport as Clip;
use grabd_domain::capture::{CaptureSpec, Content as PageContent, FileKind};
use grabd_domain::grabs::{RenderMetadata, Warning};
use grabd_domain::render::CapturedFile;
use grabd_memory::Reservation;
use serde::{Deserialize, Serialize};

use crate::page::context::CaptureContext;
use crate::page::error::CaptureError;
use crate::page::findings::file_error::{not_made, too_large};
use crate::page::findings::{elements, har, mhtml, pdf, report};
use crate::page::picture::shown::{EXTRACT, ImageSize, limit};
use crate::page::script;

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

/// The memory that the files of a capture may take, beside that of the image: the largest message of the browser, and all
/// files.
pub(in crate::page) fn memory_bytes(spec: &CaptureSpec) -> u64 {
    let made = spec.page_files();
    let all: u64 = made.iter().map(|kind| kind.max_bytes()).sum();
    // A text arrives as JSON, a PDF in chunks.
    let texts = made.iter().filter(|kind| **kind != FileKind::Pdf);
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
    let mut listed = None;
    for kind in &context.spec.page_files() {
        let (content, is_cut) = match kind {
            FileKind::Html => (html(context).await?, false),
            FileKind::Text => text(context, *kind, "text", metadata).await?,
            FileKind::Markdown => text(context, *kind, "markdown", metadata).await?,
            FileKind::Links => links(context).await?,
            FileKind::Elements | FileKind::Accessibility => {
                if listed.is_none() {
                    listed = elements::list(context, image, clip).await?;
                }
                listed.as_mut().map(|listed| listed.take(*kind)).ok_or_else(|| not_made(*kind))?
            }
            FileKind::Pdf => (pdf::print(context, metadata).await?, false),
            FileKind::Mhtml => (mhtml::save(context).await?, false),
            FileKind::Report => (report::write(context, metadata), false),
            FileKind::Har => (har::write(context, metadata), false),
            // The core makes them of images.
            FileKind::Marks | FileKind::Difference | FileKind::Thumbnail | FileKind::Evidence => {
                return Err(not_made(*kind));
            }
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

#[cfg(test)]
mod tests {
    use grabd_domain::capture::CaptureRequest;

    use super::*;

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
        assert_eq!(also(&["mhtml", "pdf"]), (16 + 32 + 32) << 20);
    }
}
