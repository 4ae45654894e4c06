//! Tool output for grabs.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use grabd_proto::v1::{Grab, GrabFile};
use http::HeaderMap;
use rmcp::model::{Annotations, ContentBlock, ImageContent, Resource, Role};
use serde_json::Value;

use super::context::ToolContext;
use super::output::ToolOutput;
use crate::rest::error::ApiError;
use crate::rest::wire;

/// Longest `final_url` in bytes. Longer ones are removed.
const MAX_FINAL_URL_BYTES: usize = 4096;

/// The output for a grab: structured content, a link to the image and, if `with_image` is set, the image itself.
pub(super) async fn tool_output(
    context: &ToolContext,
    mut grab: Grab,
    with_image: bool,
    metadata: HeaderMap,
) -> Result<ToolOutput, ApiError> {
    complete_urls(context, &mut grab);
    let mut blocks = Vec::new();
    if let Some(url) = &grab.image_url {
        let path = url.strip_prefix(&context.mcp.origin).filter(|_| with_image);
        if let Some(path) = path {
            blocks.push(image_block(context, path).await);
        }
        blocks.push(ContentBlock::resource_link(link(&grab, url)));
    }
    blocks.extend(grab.files.iter().map(|file| ContentBlock::resource_link(file_link(&grab, file))));
    Ok(ToolOutput { structured: structured_content(context, &grab)?, blocks, metadata })
}

/// The preview of an image, or a text that says where the image is.
async fn image_block(context: &ToolContext, path: &str) -> ContentBlock {
    let preview = match context.mcp.previews.preview(path).await {
        Ok(preview) => preview,
        Err(error) => return ContentBlock::text(error.advice()),
    };
    let annotations = Annotations::default().with_audience(vec![Role::User, Role::Assistant]).with_priority(1.0);
    let image = ImageContent::new(BASE64_STANDARD.encode(&preview.bytes), preview.media_type.clone());
    ContentBlock::Image(image.with_annotations(annotations))
}

/// The structured content of a grab.
pub(super) fn structured_content(context: &ToolContext, grab: &Grab) -> Result<Value, ApiError> {
    let shown = wire::grab(grab).ok_or_else(|| context.internal("the core returned an incomplete grab"))?;
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
