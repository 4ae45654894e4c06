//! A grab as a result shows it.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use grabd_proto::v1::Grab;
use http::HeaderMap;
use rmcp::model::{Annotations, ContentBlock, ImageContent, Resource, Role};
use serde_json::Value;

use super::{Desk, Success};
use crate::rest::error::Failure;
use crate::rest::wire;

/// Longest address that a page ended up at which is worth telling an agent, in bytes.
const ADDRESS_BYTES: usize = 4096;

/// The grab with the link to its image and, if wanted, the picture itself.
pub(super) async fn grab(
    desk: &Desk,
    mut grab: Grab,
    with_picture: bool,
    metadata: HeaderMap,
) -> Result<Success, Failure> {
    complete(desk, &mut grab);
    let mut blocks = Vec::new();
    if let Some(url) = &grab.image_url {
        let path = url.strip_prefix(&desk.mcp.origin).filter(|_| with_picture);
        let preview = match path {
            Some(path) => desk.mcp.pictures.preview(path).await,
            None => None,
        };
        if let Some(preview) = preview {
            let for_both = Annotations::default().with_audience(vec![Role::User, Role::Assistant]).with_priority(1.0);
            let picture = ImageContent::new(BASE64_STANDARD.encode(&preview.bytes), preview.media_type);
            blocks.push(ContentBlock::Image(picture.with_annotations(for_both)));
        }
        blocks.push(ContentBlock::resource_link(link(&grab, url)));
    }
    Ok(Success { structured: structured(desk, &grab)?, blocks, metadata })
}

/// The grab as structured content.
pub(super) fn structured(desk: &Desk, grab: &Grab) -> Result<Value, Failure> {
    let shown = wire::grab(grab).ok_or_else(|| desk.internal("the core told an incomplete grab"))?;
    serde_json::to_value(shown).map_err(|_| desk.internal("a grab is no JSON"))
}

/// Agents have no origin that a relative address could belong to, so every address is made whole.
pub(super) fn complete(desk: &Desk, grab: &mut Grab) {
    if let Some(url) = grab.image_url.take_if(|url| url.starts_with('/')) {
        grab.image_url = Some(format!("{}{url}", desk.mcp.origin));
    }
    grab.final_url.take_if(|url| url.len() > ADDRESS_BYTES);
}

fn link(grab: &Grab, url: &str) -> Resource {
    let ending = url.rsplit_once('.').map_or("png", |(_, ending)| ending);
    let mut link = Resource::new(url, format!("grab-{}.{ending}", grab.id)).with_mime_type(format!("image/{ending}"));
    link.size = grab.bytes.and_then(|bytes| u64::try_from(bytes).ok());
    link
}
