//! Ends the open grabs of teams that may have none: suspended and deleted ones.

use grabd_domain::Timestamp;
use grabd_domain::grabs::{Failure, FailureReason, Grab, RenderMetadata};
use grabd_domain::ids::TeamId;
use grabd_store::Store;
use grabd_store::grabs::{FailGrab, FailureSource};

/// Open grabs that are ended at a time.
const BATCH: u32 = 100;
/// The failure of grabs that were open when their team was deleted.
pub(crate) const TEAM_DELETED: &str = "The team was deleted before this page was captured; nothing was charged.";

/// Ends the open grabs of an inactive team without charging for them, which releases their credits. Returns them with
/// their ends.
///
/// # Errors
/// Store errors. Some grabs may be open then.
pub(crate) async fn end_open_grabs(
    store: &Store,
    team: TeamId,
    message: &str,
    now: Timestamp,
) -> Result<Vec<Grab>, grabd_store::Error> {
    let mut ended = Vec::new();
    loop {
        let open = store.accounts().open_grabs_of(team, BATCH).await?;
        if open.is_empty() {
            return Ok(ended);
        }
        for grab in open {
            let failing = FailGrab {
                grab,
                source: FailureSource::Cancel,
                failure: Failure::new(FailureReason::RenderFailed, message),
                metadata: RenderMetadata::default(),
                now,
            };
            // `None`: it ended by itself meanwhile.
            ended.extend(store.grabs().fail(failing).await?.map(|ended| ended.grab));
        }
    }
}
