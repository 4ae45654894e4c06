//! What the core does with a stored image before its grab is done.

use grabd_domain::capture::CaptureSpec;
use grabd_domain::ids::GrabId;

/// What the core does with a stored image before its grab is done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FinalSteps {
    /// The earlier grab whose image is compared with that of this one.
    pub(crate) compare_to: Option<GrabId>,
    /// Compute the perceptual hash?
    pub(crate) phash: bool,
}

impl FinalSteps {
    /// The steps that a grab asks for.
    pub(super) fn of(spec: &CaptureSpec) -> Self {
        Self { compare_to: spec.compare_to, phash: spec.phash }
    }
}
