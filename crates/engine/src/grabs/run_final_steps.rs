//! What is done with a stored image before its grab is done.

use std::time::Duration;

use grabd_domain::Timestamp;
use grabd_domain::grabs::{ImageKey, RenderMetadata};
use grabd_domain::ids::GrabId;

use super::derived::Derived;
use super::evidence::OnlyPacked;
use super::not_completed::NotCompleted;
use super::{compare, evidence, marks, phash, smaller_copy, upload};
use crate::queue::FinalSteps;
use crate::service::Core;

/// Does what the grab asks for with the image that was received at this time and is stored under this key, and adds the results
/// to the metadata. Files are stored within the limit. `only_packed` are those of the page that only its evidence has.
///
/// # Errors
/// See [`NotCompleted`]. Files that are left behind are deleted with the image.
pub(super) async fn run(
    core: &Core,
    steps: &FinalSteps,
    received: (GrabId, Timestamp),
    (key, only_packed): (&ImageKey, OnlyPacked),
    metadata: &mut RenderMetadata,
    limit: Duration,
) -> Result<(), NotCompleted> {
    let FinalSteps { compare_to, tolerance, phash, marks, thumbnail, evidence, upload_url } = steps;
    if let Some(earlier) = compare_to {
        compare::compare(core, (*earlier, tolerance), key, metadata, limit).await?;
    }
    metadata.phash = match phash {
        true => Some(phash::of_stored(core, key).await.map_err(|error| error.not_completed(Derived::Hash))?),
        false => None,
    };
    if let Some(scale) = marks {
        marks::add(core, key, *scale, metadata, limit).await?;
    }
    if let Some(thumbnail) = thumbnail {
        smaller_copy::add(core, key, *thumbnail, metadata, limit).await?;
    }
    if evidence.is_some() {
        evidence::add(core, received, (key, only_packed), metadata, limit).await?;
    }
    // Last: what fails before is not uploaded.
    if let Some(url) = upload_url {
        upload::upload(core, url, key).await?;
    }
    Ok(())
}
