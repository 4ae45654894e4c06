//! Previews the placeholder of a test key for visitors without an account. Nothing is stored or charged.

use bytes::Bytes;
use grabd_domain::capture::{CaptureRequest, CaptureSpec};

use super::placeholder_create;
use crate::error::Error;
use crate::service::Core;
use crate::targets;

/// A placeholder that is not stored.
#[derive(Debug)]
pub struct Preview {
    /// The capture spec.
    pub spec: CaptureSpec,
    /// The image file.
    pub image: Bytes,
}

/// Draws the placeholder of a request, without DNS lookups or page visits. Reserved `.test` names fail as they do for
/// test keys, but without delay.
///
/// # Errors
/// The same as a create with a test key.
#[tracing::instrument(name = "grabs.preview", skip_all)]
pub async fn preview(core: &Core, request: &CaptureRequest) -> Result<Preview, Error> {
    let spec = CaptureSpec::parse(request)?;
    targets::check_page_url(core, &spec.url)?;
    let (failure, _) = placeholder_create::requested_outcome(&spec, core.settings.async_queue)?;
    if let Some(failure) = failure {
        return Err(failure.to_fault().into());
    }
    let image = core.grabs.shown.images.draw(&spec).await?;
    Ok(Preview { spec, image })
}
