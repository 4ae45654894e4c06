//! Compares the images of two grabs that exist, for people who look at both. Nothing is stored but the figures of the
//! latest comparisons, in memory.
//!
//! As with thumbnails, comparisons are made one at a time, and a payer has at most one in the queue for that.

use std::time::Duration;

use grabd_domain::grabs::{Difference, Grab, ImageKey, RenderMetadata, State};
use grabd_domain::limits::COMPARE_LIMIT;
use image::ImageError;
use tokio::time::timeout;

use super::measure::{Changed, figures};
use crate::billing::find_payer;
use crate::error::internal_from;
use crate::grabs::derived::Error;
use crate::grabs::loaded;
use crate::service::Core;

/// How long a request may wait for its turn: longer than one comparison takes.
pub(super) const TURN_LIMIT: Duration = Duration::from_secs(COMPARE_LIMIT.as_secs() + 2);
/// Time limit of loading both images.
const LOAD_LIMIT: Duration = Duration::from_secs(5);

/// Why two grabs were not compared.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CompareError {
    /// One of them has no image.
    #[error("one of the captures has no image")]
    NoImage,
    /// The images need more memory than all images together may take.
    #[error("the images are too large to be compared")]
    TooLarge,
    /// It was not the turn of this payer in time, or the comparison took too long.
    #[error("other images are being processed")]
    Busy,
    /// An internal error.
    #[error(transparent)]
    Internal(crate::Error),
}

internal_from!(CompareError);

impl From<Error> for CompareError {
    fn from(error: Error) -> Self {
        if matches!(error, Error::Deleted) {
            Self::NoImage
        } else if matches!(error, Error::TooLarge | Error::Undecodable(ImageError::Limits(_))) {
            Self::TooLarge
        } else if error.is_busy() {
            Self::Busy
        } else {
            Self::Internal(crate::Error::other(error))
        }
    }
}

/// What changed between the images of two grabs of one team: the same as `compare_to` reports. `earlier` and `later` were
/// read for that team.
///
/// # Errors
/// See [`CompareError`].
#[tracing::instrument(name = "grabs.compare_existing", skip_all)]
pub async fn compare_existing(core: &Core, earlier: &Grab, later: &Grab) -> Result<Difference, CompareError> {
    let (Some((earlier_key, earlier_metadata)), Some((key, metadata))) = (image_of(earlier), image_of(later)) else {
        return Err(CompareError::NoImage);
    };
    if earlier.team != later.team {
        return Err(CompareError::NoImage);
    }
    if let Some(known) = metadata.difference.as_ref().filter(|known| known.compared_to == earlier.id) {
        return Ok(known.clone());
    }
    let is_same_file = metadata.image_sha256.is_some() && metadata.image_sha256 == earlier_metadata.image_sha256;
    if earlier.id == later.id || is_same_file {
        return Ok(Difference { compared_to: earlier.id, changed_ppm: 0, regions: Vec::new() });
    }
    let comparisons = &core.grabs.comparisons;
    let pair = (earlier_key.clone(), key.clone());
    if let Some(known) = comparisons.find(&pair) {
        return Ok(known);
    }
    let payer = find_payer(core, later.team).await?;
    let _turn = timeout(TURN_LIMIT, comparisons.turns.take(&payer.id)).await.map_err(|_| CompareError::Busy)?;
    // A concurrent request for the same pair may have been first.
    if let Some(known) = comparisons.find(&pair) {
        return Ok(known);
    }
    let load = async { Ok::<_, Error>((loaded::load(core, earlier_key).await?, loaded::load(core, key).await?)) };
    let (before, after) = timeout(LOAD_LIMIT, load).await.map_err(|_| CompareError::Busy)??;
    let Changed { ppm, regions } = figures(&core.tasks, &core.grabs.memory, before, after).await?;
    let difference = Difference { compared_to: earlier.id, changed_ppm: ppm, regions };
    comparisons.keep(pair, &difference);
    Ok(difference)
}

/// The image of a grab, and what is known of it.
pub(super) fn image_of(grab: &Grab) -> Option<(&ImageKey, &RenderMetadata)> {
    match &grab.state {
        State::Done { image: Some(key), metadata, .. } if grab.deleted_at.is_none() => Some((key, metadata)),
        State::Done { .. } | State::Pending | State::Processing | State::Failed { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reason_why_nothing_was_compared_is_kept() {
        for (error, is_expected) in [
            (Error::Deleted, (|of| matches!(of, CompareError::NoImage)) as fn(CompareError) -> bool),
            (Error::TooLarge, |of| matches!(of, CompareError::TooLarge)),
            (Error::Busy, |of| matches!(of, CompareError::Busy)),
            (Error::TooSlow, |of| matches!(of, CompareError::Busy)),
            (Error::DrawingTooLarge, |of| matches!(of, CompareError::Internal(_))),
        ] {
            let shown = error.to_string();
            assert!(is_expected(error.into()), "{shown}");
        }
    }
}
