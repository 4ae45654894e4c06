//! Cancels an open grab for its caller.

use std::time::Duration;

use grabd_domain::faults::ErrorCause;
use grabd_domain::grabs::{Failure, FailureReason, RenderMetadata};
use grabd_domain::ids::GrabId;
use grabd_store::grabs::{EndedGrab, FailGrab, FailureSource};

use crate::admission::{self, SlotUse};
use crate::queue;
use crate::service::Core;

/// Maximum number of tries. If the database is unavailable for longer, the grab continues to its end.
const MAX_TRIES: u32 = 5;
/// Backoff after a failed try, multiplied by the number of tries.
const BACKOFF: Duration = Duration::from_millis(300);

/// Ends the grab without charging for it, releases its idempotency key, and cancels the render. Does nothing when the
/// grab has ended already: deleting the job decides. The caller must have checked that the grab belongs to its team.
pub(super) async fn cancel(core: &Core, id: GrabId) {
    for tries in 1..=MAX_TRIES {
        let failing = FailGrab {
            grab: id,
            source: FailureSource::Cancel,
            failure: Failure::new(
                FailureReason::RenderFailed,
                "The request was cancelled by its caller; nothing was charged.",
            )
            .caused_by(ErrorCause::Request),
            metadata: RenderMetadata::default(),
            now: core.clock.now(),
        };
        match core.store.grabs().fail(failing).await {
            Ok(Some(EndedGrab { grab })) => {
                let lease = core.queue.dispatcher.cancel(id);
                if let Some(lease) = lease {
                    admission::slot_used(core, lease, SlotUse::Failed).await;
                }
                queue::record_end(core, grab);
                return;
            }
            Ok(None) => return,
            Err(error) => {
                tracing::warn!(%error, grab.id = %id, tries, "a grab could not be cancelled");
                // Backoff: the database may be available again.
                tokio::time::sleep(BACKOFF * tries).await;
            }
        }
    }
}
