//! Tool output for grabs.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use grabd_api::SLICE_KIND;
use grabd_pixels::Rows;
use grabd_proto::v1::{Grab, GrabFile};
use http::HeaderMap;
use rmcp::model::{Annotations, ContentBlock, ImageContent, Resource, Role};
use serde_json::Value;

use super::super::parts::{self, Part, WantedParts};
use super::super::preview::MAX_PREVIEW_SIDE_PX;
use super::context::ToolContext;
use super::output::{MAX_RESULT_BYTES, ToolOutput};
use super::read_files::{FurtherImage, WantedFiles};
use crate::rest::error::ApiError;
use crate::rest::wire;

/// Longest `final_url` in bytes. Longer ones are removed.
const MAX_FINAL_URL_BYTES: usize = 4096;
/// What the links to files and the lines between images take of a result, in bytes.
const LINKS_BYTES: usize = 20_000;

/// What a result shows of the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShowImage {
    /// Only its URL.
    No,
    /// The image, or its parts from a row on.
    FromRow(u32),
}

/// What a result shows of a grab.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) image: ShowImage,
    pub(super) files: WantedFiles,
}

/// The output for a grab: structured content, a link to the image, and the image and what of the files is to be shown.
pub(super) async fn tool_output(
    context: &ToolContext,
    mut grab: Grab,
    wanted: &Wanted,
    mut metadata: HeaderMap,
) -> Result<ToolOutput, ApiError> {
    complete_urls(context, &mut grab);
    let structured = structured_content(context, &grab)?;
    let texts = wanted.files.texts(context, &grab, &mut metadata).await?;
    let further = wanted.files.images(&grab);
    let is_shown = grab.image_url.is_some() && wanted.image != ShowImage::No;
    let max_bytes = max_image_bytes(&texts, &structured, further.len() + usize::from(is_shown));
    let mut blocks = Vec::new();
    if let Some(url) = &grab.image_url
        && let (Some(path), ShowImage::FromRow(from_row)) = (url.strip_prefix(&context.mcp.origin), wanted.image)
    {
        match wanted_parts(&grab, from_row) {
            None => blocks.push(image_block(context, path, max_bytes).await),
            Some(parts) => blocks.extend(part_blocks(context, &grab, path, parts, max_bytes).await),
        }
    }
    for FurtherImage { about, url } in further {
        match url {
            Ok(url) => {
                let path = url.strip_prefix(&context.mcp.origin).unwrap_or(&url);
                blocks.push(ContentBlock::text(about));
                blocks.push(image_block(context, path, max_bytes).await);
            }
            Err(why) => blocks.push(ContentBlock::text(why.to_string())),
        }
    }
    blocks.extend(texts);
    blocks.extend(grab.image_url.as_ref().map(|url| ContentBlock::resource_link(link(&grab, url))));
    // Slices are many, and in the structured content.
    let files = grab.files.iter().filter(|file| file.kind != SLICE_KIND);
    blocks.extend(files.map(|file| ContentBlock::resource_link(file_link(&grab, file))));
    Ok(ToolOutput { structured, blocks, metadata })
}

/// The most bytes of each of some images, so that the result with these texts is not too large.
fn max_image_bytes(texts: &[ContentBlock], structured: &Value, images: usize) -> usize {
    let texts = serde_json::to_vec(texts).map_or(0, |json| json.len());
    // It is also sent as text, in which its quotation marks are escaped.
    let structured = structured.to_string().len().saturating_mul(3);
    let left = MAX_RESULT_BYTES.saturating_sub(texts + structured + LINKS_BYTES);
    // Base64 has four characters for three bytes.
    left / 4 * 3 / images.max(1)
}

/// The preview of an image, or a text that says where the image is.
async fn image_block(context: &ToolContext, path: &str, max_bytes: usize) -> ContentBlock {
    let preview = match context.mcp.previews.preview(path, context.owner(), max_bytes).await {
        Ok(preview) => preview,
        Err(error) => return ContentBlock::text(error.advice()),
    };
    image_content(&preview.bytes, &preview.media_type)
}

fn image_content(bytes: &[u8], media_type: &str) -> ContentBlock {
    let annotations = Annotations::default().with_audience(vec![Role::User, Role::Assistant]).with_priority(1.0);
    let image = ImageContent::new(BASE64_STANDARD.encode(bytes), media_type);
    ContentBlock::Image(image.with_annotations(annotations))
}

/// The parts in which the image is shown. None if it is shown as a whole.
fn wanted_parts(grab: &Grab, from_row: u32) -> Option<WantedParts> {
    let pixels = |number: Option<i32>| number.and_then(|number| u32::try_from(number).ok());
    let (width, height) = (pixels(grab.image_width)?, pixels(grab.image_height)?);
    let css_width = pixels(Some(grab.width))?;
    let is_readable = |height| parts::is_readable((width, height), css_width, MAX_PREVIEW_SIDE_PX);
    let slices = grab.files.iter().filter(|file| file.kind == SLICE_KIND);
    let cuts: Vec<Rows> =
        slices.filter_map(|file| Some(Rows { y: pixels(file.y)?, height: pixels(file.height)? })).collect();
    match from_row == 0 && cuts.len() < 2 && is_readable(height) {
        true => None,
        false if cuts.iter().all(|rows| is_readable(rows.height)) => Some(WantedParts { from_row, cuts }),
        false => Some(WantedParts { from_row, cuts: Vec::new() }),
    }
}

/// Parts of an image, each after a text that says where it is, and how to get the next ones.
async fn part_blocks(
    context: &ToolContext,
    grab: &Grab,
    path: &str,
    wanted: WantedParts,
    max_bytes: usize,
) -> Vec<ContentBlock> {
    let height = grab.image_height.and_then(|height| u32::try_from(height).ok()).unwrap_or(0);
    if wanted.from_row >= height {
        return vec![ContentBlock::text(format!("The image has {height} rows: `from_row` is beyond its end."))];
    }
    let made = match context.mcp.previews.parts(path, wanted, context.owner(), max_bytes).await {
        Ok(made) => made,
        Err(error) => return vec![ContentBlock::text(error.advice())],
    };
    let mut blocks = Vec::new();
    for Part { rows, file } in &made.parts {
        let slice = grab.files.iter().find(|file| file.y.and_then(|y| u32::try_from(y).ok()) == Some(rows.y));
        let heading = slice.and_then(|file| file.heading.as_ref()).map(|text| format!(", under the heading {text:?}"));
        let heading = heading.unwrap_or_default();
        blocks.push(ContentBlock::text(format!("Rows {} to {} of {height}{heading}:", rows.y, rows.end() - 1)));
        blocks.push(image_content(file, "image/jpeg"));
    }
    match made.parts.last() {
        Some(last) if last.rows.end() == height => {}
        Some(last) => blocks.push(ContentBlock::text(format!(
            "For the rest, call get_grab with include_image true and from_row {}, or fetch image_url.",
            last.rows.end()
        ))),
        None => blocks.push(ContentBlock::text("There is no preview of this part. Fetch image_url for the image.")),
    }
    blocks
}

/// The structured content of a grab.
pub(super) fn structured_content(context: &ToolContext, grab: &Grab) -> Result<Value, ApiError> {
    // REST shows the URLs of placeholders without their origin, which agents do not know.
    let with_origin = Grab { live: true, ..grab.clone() };
    let shown = wire::grab(&with_origin).ok_or_else(|| context.internal("the core returned an incomplete grab"))?;
    serde_json::to_value(shown).map_err(|_| context.internal("the grab cannot be serialized"))
}

/// Makes `image_url` absolute, because agents have no base URL to resolve it, and removes a `final_url` that is too
/// long.
pub(super) fn complete_urls(context: &ToolContext, grab: &mut Grab) {
    if let Some(url) = grab.image_url.take_if(|url| url.starts_with('/')) {
        grab.image_url = Some(format!("{}{url}", context.mcp.origin));
    }
    for file in &mut grab.files {
        if file.url.starts_with('/') {
            file.url.insert_str(0, &context.mcp.origin);
        }
    }
    if let Some(url) = grab.difference.as_mut().and_then(|difference| difference.image_url.as_mut())
        && url.starts_with('/')
    {
        url.insert_str(0, &context.mcp.origin);
    }
    grab.final_url.take_if(|url| url.len() > MAX_FINAL_URL_BYTES);
}

fn file_link(grab: &Grab, file: &GrabFile) -> Resource {
    let name = file.url.rsplit_once('/').map_or(file.kind.as_str(), |(_, name)| name);
    let mut link = Resource::new(&file.url, format!("grab-{}-{name}", grab.id)).with_mime_type(&file.media_type);
    link.size = u64::try_from(file.bytes).ok();
    link
}

fn link(grab: &Grab, url: &str) -> Resource {
    let extension = url.rsplit_once('.').map_or("png", |(_, extension)| extension);
    let mut link =
        Resource::new(url, format!("grab-{}.{extension}", grab.id)).with_mime_type(format!("image/{extension}"));
    link.size = grab.bytes.and_then(|bytes| u64::try_from(bytes).ok());
    link
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn images_share_what_texts_leave_of_a_result() {
        let structured = json!({ "id": "x", "target_url": "a".repeat(4000) });
        assert!(max_image_bytes(&[], &structured, 1) >= 600_000, "one image is as large as without texts");
        let texts = [ContentBlock::text("line\n".repeat(40_000))];
        for images in 1..=3 {
            let each = max_image_bytes(&texts, &structured, images);
            let whole = serde_json::to_vec(&texts).unwrap().len() + images * each.div_ceil(3) * 4;
            assert!(each > 100_000 && whole + 3 * 4000 < MAX_RESULT_BYTES, "{images} images of {each} bytes");
        }
        assert_eq!(max_image_bytes(&[ContentBlock::text("a".repeat(900_000))], &structured, 1), 0);
    }
}
