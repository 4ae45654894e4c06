//! The failures of captures whose files cannot be made.

use grabd_domain::capture::FileKind;

use crate::page::error::CaptureError;

/// The file has more bytes than it may.
pub(super) fn too_large(kind: FileKind) -> CaptureError {
    let (name, megabytes) = (kind.as_str(), kind.max_bytes() >> 20);
    let advice = match kind {
        FileKind::Pdf => "Leave out backgrounds, or select `pages`.",
        FileKind::Mhtml | FileKind::Report => "Leave it out of `also`, and leave out `evidence`, which has it, too.",
        FileKind::Html
        | FileKind::Text
        | FileKind::Markdown
        | FileKind::Links
        | FileKind::Elements
        | FileKind::Accessibility
        | FileKind::Marks
        | FileKind::Har
        | FileKind::Difference
        | FileKind::Thumbnail
        | FileKind::Evidence => "Leave it out of `also`.",
    };
    CaptureError::failed(format!("The {name} of the page has more than {megabytes} MB. {advice}"))
}

/// The browser has not given the content of the file.
pub(super) fn not_made(kind: FileKind) -> CaptureError {
    CaptureError::failed(format!("The {} of the page could not be read.", kind.as_str()))
}
