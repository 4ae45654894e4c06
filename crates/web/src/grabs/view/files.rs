//! The files beside an image, as links.

use std::borrow::Cow;

use grabd_domain::capture::{AttachmentName, FileKind};
use grabd_domain::grabs::{Grab, RenderMetadata, ShownFile};

use super::units::size;

/// An attachment.
pub(crate) struct FileLink {
    pub(crate) path: String,
    /// The name under which it is saved.
    pub(crate) file_name: String,
    pub(crate) label: Cow<'static, str>,
    pub(crate) size: String,
    /// The extension of its name in upper case, which is shown instead of a preview.
    pub(crate) extension: String,
    /// Its width and height in pixels, if it is an image that the page does not show otherwise.
    pub(crate) preview: Option<(u32, u32)>,
}

/// The attachments of a grab.
pub(super) fn file_links(grab: &Grab, metadata: &RenderMetadata) -> Vec<FileLink> {
    metadata.shown_files(grab.spec.format).map(|file| file_link(grab, metadata, &file)).collect()
}

fn file_link(grab: &Grab, metadata: &RenderMetadata, file: &ShownFile<'_>) -> FileLink {
    let label = match file.name {
        AttachmentName::Also(FileKind::Html) => "HTML".into(),
        AttachmentName::Also(FileKind::Text) => "Text".into(),
        AttachmentName::Also(FileKind::Markdown) => "Markdown".into(),
        AttachmentName::Also(FileKind::Links) => "Links".into(),
        AttachmentName::Also(FileKind::Elements) => "Elements".into(),
        AttachmentName::Also(FileKind::Accessibility) => "Accessibility".into(),
        AttachmentName::Also(FileKind::Marks) => "Marks".into(),
        AttachmentName::Also(FileKind::Mhtml) => "MHTML".into(),
        AttachmentName::Also(FileKind::Pdf) => "PDF".into(),
        AttachmentName::Also(FileKind::Report) => "Report".into(),
        AttachmentName::Also(FileKind::Har) => "HAR".into(),
        AttachmentName::Also(FileKind::Difference) => "Difference".into(),
        AttachmentName::Also(FileKind::Thumbnail) => "Thumbnail".into(),
        AttachmentName::Also(FileKind::Evidence) => "Evidence".into(),
        AttachmentName::Slice(number) => format!("Slice {}", number.get()).into(),
        AttachmentName::Viewport(number) => match file.viewport {
            Some(size) => format!("{} × {}", size.viewport_width, size.viewport_height).into(),
            None => format!("Viewport {}", number.get()).into(),
        },
        AttachmentName::Step(number) => match file.step_image {
            Some(image) => image.name.clone().into(),
            None => format!("Capture {}", number.get()).into(),
        },
    };
    let name = file.name.file_name(grab.spec.format);
    let file_name = format!("{}-{}-{name}", grab.spec.url.host(), grab.id);
    let extension = name.rsplit('.').next().unwrap_or_default().to_ascii_uppercase();
    let preview = preview(grab, metadata, file);
    FileLink { path: format!("/{}", file.path), file_name, label, size: size(file.bytes), extension, preview }
}

/// The size of a file that is shown as a small image. The image of the difference is shown in full elsewhere.
fn preview(grab: &Grab, metadata: &RenderMetadata, file: &ShownFile<'_>) -> Option<(u32, u32)> {
    let width = metadata.image_width.unwrap_or_else(|| grab.spec.viewport.width());
    let height = metadata.image_height.unwrap_or_else(|| grab.spec.reported_height());
    match file.name {
        AttachmentName::Slice(_) => file.place.map(|place| (width, place.height)),
        AttachmentName::Viewport(_) | AttachmentName::Step(_) => file.width().zip(file.height()),
        AttachmentName::Also(FileKind::Marks) => Some((width, height)),
        AttachmentName::Also(
            FileKind::Html
            | FileKind::Text
            | FileKind::Markdown
            | FileKind::Links
            | FileKind::Elements
            | FileKind::Accessibility
            | FileKind::Mhtml
            | FileKind::Pdf
            | FileKind::Report
            | FileKind::Har
            | FileKind::Difference
            | FileKind::Thumbnail
            | FileKind::Evidence,
        ) => None,
    }
}
