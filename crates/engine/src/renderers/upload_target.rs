//! Where a renderer may upload the image of a lease itself, so that it does not pass through the core.

use std::time::Duration;

use grabd_images::UploadTarget;
use tokio::time::timeout;

use crate::queue::{FinalSteps, Lease};
use crate::service::Core;

/// Time limit of signing. It waits only when temporary credentials are renewed.
const SIGN_LIMIT: Duration = Duration::from_secs(1);
/// With less time left, an upload is not worth a try.
const MIN_VALID: Duration = Duration::from_secs(5);

/// Where the renderer may upload the image of this lease. `None` if it sends the image to the core: images are stored in a
/// directory, the core reads the image before the grab is done, or the operator wants it.
///
/// The URL is not valid any more when the lease ends. The object of a lost lease is deleted later.
pub async fn upload_target(core: &Core, lease: &Lease) -> Option<UploadTarget> {
    if !core.settings.direct_uploads || FinalSteps::of(&lease.spec) != FinalSteps::default() {
        return None;
    }
    let valid = core.queue.dispatcher.storing_time(lease.token, core.clock.now());
    if valid < MIN_VALID {
        return None;
    }
    match timeout(SIGN_LIMIT, core.grabs.images.upload_target(&lease.upload_key, valid)).await {
        Ok(Ok(target)) => target,
        Ok(Err(error)) => {
            tracing::warn!(%error, grab.id = %lease.grab, "an upload could not be signed; the image passes through the core");
            None
        }
        Err(_) => {
            tracing::warn!(grab.id = %lease.grab, "an upload was not signed in time; the image passes through the core");
            None
        }
    }
}
