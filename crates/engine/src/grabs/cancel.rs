//! Takes an open grab back on behalf of its caller.

use std::time::Duration;

use grabd_domain::grabs::{Facts, Failure, FailureReason};
use grabd_domain::ids::GrabId;
use grabd_store::{By, Ended, Failing};

use crate::core::Core;

/// How often the database is asked. When it cannot be reached for longer, the grab goes on to its end.
const TRIES: u32 = 5;
/// Pause after a try that failed, for each one so far.
const PAUSE: Duration = Duration::from_millis(300);

/// Ends the grab uncharged, lets go of its idempotency key and has the render broken off, unless it has ended already:
/// whoever deletes the job decides. Only for those who know that the grab is the caller's.
pub(super) async fn cancel(core: &Core, id: GrabId) {
    for tries in 1..=TRIES {
        let failing = Failing {
            grab: id,
            by: By::Cancel,
            failure: Failure::new(
                FailureReason::RenderFailed,
                "The request was cancelled by its caller; nothing was charged.",
            ),
            facts: Facts::default(),
            now: core.clock.now(),
        };
        match core.store.fail(failing).await {
            Ok(Some(Ended { grab })) => {
                core.dispatcher.cancel(id);
                super::ended(core, grab);
                return;
            }
            Ok(None) => return,
            Err(error) => {
                tracing::warn!(%error, grab.id = %id, tries, "a grab could not be cancelled");
                tokio::time::sleep(PAUSE * tries).await;
            }
        }
    }
}
