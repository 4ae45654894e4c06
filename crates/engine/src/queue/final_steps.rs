//! What the core does with a stored image before its grab is done.

use grabd_domain::capture::{CaptureSpec, FileKind, Thumbnail, UploadUrl};
use grabd_domain::ids::GrabId;
use grabd_pixels::Tolerance;

use crate::tolerance;

/// What the core does with a stored image before its grab is done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FinalSteps {
    /// The earlier grab whose image is compared with that of this one.
    pub(crate) compare_to: Option<GrabId>,
    /// What does not count in that comparison.
    pub(crate) tolerance: Tolerance,
    /// Whether the perceptual hash is computed.
    pub(crate) phash: bool,
    /// Image pixels per CSS pixel, rounded up, if marks are drawn on the elements.
    pub(crate) marks: Option<u32>,
    /// How a smaller copy of the image is made, if there is one.
    pub(crate) thumbnail: Option<Thumbnail>,
    /// The signed package, if one is made.
    pub(crate) evidence: Option<EvidenceStep>,
    /// Where the image is uploaded to.
    pub(crate) upload_url: Option<UploadUrl>,
}

/// How the signed package is made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EvidenceStep {
    /// Files that are made for the package only, and not stored beside the image.
    pub(crate) only_packed: Vec<FileKind>,
}

impl FinalSteps {
    /// The steps that a grab asks for.
    pub(crate) fn of(spec: &CaptureSpec) -> Self {
        Self {
            compare_to: spec.compare_to,
            tolerance: tolerance::of(spec),
            phash: spec.phash,
            marks: spec.also.contains(&FileKind::Marks).then(|| spec.scale.rounded_up()),
            thumbnail: spec.thumbnail,
            evidence: spec.evidence.then(|| EvidenceStep {
                only_packed: spec.evidence_files().filter(|kind| !spec.also.contains(kind)).collect(),
            }),
            upload_url: spec.secrets.upload_url.clone(),
        }
    }
}
