//! Ends one attempt as its renderer reports it. The lease decides: it is held once and ends once.

use bytes::Bytes;
use grabd_domain::grabs::{Facts, Failure};
use grabd_domain::ids::{GrabId, LeaseToken};
use grabd_store::{By, Completion, Ended, Failing};

use crate::core::Core;
use crate::failpoints::{self, Step};
use crate::queue::sweep;

/// How an attempt ended.
pub(crate) enum Result {
    /// There is a picture.
    Picture { image: Bytes, execution_ms: u32, facts: Facts },
    /// The page's fault, which is final.
    Failure { failure: Failure, facts: Facts },
    /// The renderer's fault: render it again.
    Released { cause: String },
}

/// The database could not be asked; the renderer repeats.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) struct Unknown(#[from] grabd_store::Error);

/// Ends the attempt, unless the lease is no longer held: then `false`, and nothing has changed.
///
/// # Errors
/// [`Unknown`] when the outcome is not known; repeating is safe.
pub(crate) async fn finish(
    core: &Core,
    grab: GrabId,
    token: LeaseToken,
    result: Result,
) -> std::result::Result<bool, Unknown> {
    let lease = Some((grab, token));
    failpoints::reach(core, Step::Rendered, lease).await?;
    let ended = match result {
        Result::Picture { image, execution_ms, facts } => {
            let Some(key) = core.dispatcher.upload_key(token) else { return Ok(false) };
            let size_bytes = u64::try_from(image.len()).unwrap_or(0);
            if let Err(error) = core.images.put(&key, image).await {
                tracing::error!(%error, grab.id = %grab, "a picture could not be stored");
                return Ok(sweep::release(core, grab, token, "its picture could not be stored").await);
            }
            failpoints::reach(core, Step::Stored, lease).await?;
            let now = core.clock.now();
            let upload_key = key;
            let completion = Completion { grab, token, upload_key, size_bytes, execution_ms, facts, now };
            core.store.complete(completion).await?
        }
        Result::Failure { failure, facts } => {
            let now = core.clock.now();
            core.store.fail(Failing { grab, by: By::Lease(token), failure, facts, now }).await?
        }
        Result::Released { cause } => return Ok(sweep::release(core, grab, token, &cause).await),
    };
    failpoints::reach(core, Step::Completed, lease).await?;
    core.dispatcher.forget(token);
    let Some(Ended { grab }) = ended else { return Ok(false) };
    super::ended(core, grab);
    Ok(true)
}
