//! Replaces long options of grabs by digests, a day after the grabs have ended: styles and scripts may have more than a hundred
//! kilobytes, and only serve to capture a page again. Grabs of earlier versions are counted on the way.

use std::time::{Duration, Instant};

use grabd_domain::Timestamp;
use grabd_domain::limits::ASYNC_DEADLINE;
use grabd_store::Error;

use crate::service::Core;

/// How long long options are kept after the end of their grab.
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);
/// Deadlines are checked by then.
const MARGIN: Duration = Duration::from_secs(60);
/// Grabs in one transaction, which must not delay others.
const GRABS: u32 = 500;
/// Time after which the other kinds of work have their turn.
const TIME: Duration = Duration::from_secs(1);

/// Continues for some time, but at least with one batch.
pub(super) async fn run(core: &Core, now: Timestamp) -> Result<(), Error> {
    let began = Instant::now();
    let created_before = now - (ASYNC_DEADLINE + MARGIN + KEPT);
    let before = core.store.retention().request_progress(now).await?;
    let (mut progress, mut shortened) = (before, 0);
    loop {
        let visited = core.store.retention().shorten_requests(progress, created_before, now, GRABS).await?;
        progress = visited.progress;
        shortened += visited.shortened;
        if visited.grabs < u64::from(GRABS) || began.elapsed() >= TIME {
            break;
        }
    }
    if shortened > 0 {
        tracing::info!(shortened, "long options of ended grabs were replaced by digests");
    }
    match progress == before {
        true => Ok(()),
        false => core.store.retention().store_request_progress(progress).await,
    }
}
