//! What a test key would get, for somebody who has none: nothing is kept, and nobody pays.

use bytes::Bytes;
use grabd_domain::Fault;
use grabd_domain::capture::{CaptureRequest, CaptureSpec};

use super::test_create;
use crate::core::{Core, inside};

/// A placeholder that belongs to nobody.
#[derive(Debug)]
pub struct Preview {
    /// What was asked for.
    pub spec: CaptureSpec,
    /// The picture's file.
    pub image: Bytes,
}

/// Draws the placeholder of a request. Nothing is looked up and no page is visited; the reserved `.test` names fail as they
/// do for test keys, but without a wait.
///
/// # Errors
/// What a create with a test key would be answered.
pub async fn preview(core: &Core, request: &CaptureRequest) -> Result<Preview, Fault> {
    let spec = CaptureSpec::parse(request)?;
    core.guard.check_public(&spec.url)?;
    let (failure, _) = test_create::asked_for(core, &spec)?;
    if let Some(failure) = failure {
        return Err(failure.to_fault());
    }
    let image = core.placeholder.draw(&spec).await.map_err(inside("grabs.preview"))?;
    Ok(Preview { spec, image })
}
