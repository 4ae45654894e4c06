//! What is done with a stored image before its grab is done.

use grabd_domain::grabs::{ImageKey, RenderMetadata};

use super::not_completed::NotCompleted;
use super::{compare, phash, upload};
use crate::core::Core;
use crate::queue::FinalSteps;

/// Does what the grab asks for with the image that is stored under this key, and adds the results to the metadata.
///
/// # Errors
/// See [`NotCompleted`]. Files that are left behind are deleted with the image.
pub(super) async fn run(
    core: &Core,
    steps: &FinalSteps,
    key: &ImageKey,
    metadata: &mut RenderMetadata,
) -> Result<(), NotCompleted> {
    let FinalSteps { compare_to, phash, upload_url } = steps;
    if let Some(earlier) = compare_to {
        compare::compare(core, *earlier, key, metadata).await?;
    }
    metadata.phash = match phash {
        true => Some(phash::of_stored(core, key).await?),
        false => None,
    };
    // Last: what fails before is not uploaded.
    if let Some(url) = upload_url {
        upload::upload(core, url, key).await?;
    }
    Ok(())
}
