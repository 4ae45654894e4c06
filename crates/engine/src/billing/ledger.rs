//! The ledger, in pages and as a CSV file.

use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use grabd_domain::Fault;
use grabd_domain::ids::TeamId;
use grabd_store::Store;
pub use grabd_store::credits::Entry;

use super::csv;
use crate::error::Error;
use crate::service::Core;

/// Maximum number of entries on a page.
pub const MAX_ENTRIES: u32 = 100;
/// Entries of a CSV file held in memory at a time: about 60 KB.
const CHUNK: u32 = 500;

/// A page of ledger entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerPage {
    /// Newest first.
    pub entries: Vec<Entry>,
    /// Cursor of the next, older page; `None` on the last page.
    pub before: Option<i64>,
}

/// A page of a team's ledger: up to `limit` entries (1 to [`MAX_ENTRIES`]) before the entry `before`, or from the
/// newest.
///
/// # Errors
/// When the database cannot be read.
#[tracing::instrument(name = "billing.ledger", skip_all)]
pub async fn ledger(core: &Core, team: TeamId, before: Option<i64>, limit: u32) -> Result<LedgerPage, Error> {
    let limit = limit.clamp(1, MAX_ENTRIES);
    page(&core.store, team, before, limit).await
}

/// A team's whole ledger as CSV (RFC 4180), newest entry first. It is read in chunks on demand: a slow reader holds one
/// chunk in memory and no database connection. Entries added meanwhile are not included.
///
/// The stream ends with an error when the database fails; the file must not look complete then.
pub fn ledger_csv(core: &Core, team: TeamId) -> impl Stream<Item = Result<Bytes, Fault>> + Send + use<> {
    chunks(core.store.clone(), team, CHUNK)
}

fn chunks(store: Store, team: TeamId, chunk: u32) -> impl Stream<Item = Result<Bytes, Fault>> + Send {
    let rows = stream::try_unfold(Some(None), move |next: Option<Option<i64>>| {
        let store = store.clone();
        async move {
            let Some(before) = next else { return Ok(None) };
            let LedgerPage { entries, before } = page(&store, team, before, chunk).await.map_err(Error::into_fault)?;
            Ok((!entries.is_empty()).then(|| (csv::rows(&entries), before.map(Some))))
        }
    });
    stream::once(async { Ok(csv::head()) }).chain(rows)
}

async fn page(store: &Store, team: TeamId, before: Option<i64>, limit: u32) -> Result<LedgerPage, Error> {
    // One more entry shows whether there is another page.
    let mut entries = store.credits().ledger(team, before, limit + 1).await?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let has_more = entries.len() > limit;
    entries.truncate(limit);
    let before = entries.last().map(|last| last.id).filter(|_| has_more);
    Ok(LedgerPage { entries, before })
}

#[cfg(test)]
mod tests {
    use futures::TryStreamExt;
    use grabd_domain::Timestamp;
    use uuid::Uuid;

    use super::*;
    use crate::accounts;

    const NOW: Timestamp = Timestamp::from_ms(1_795_206_774_120);

    /// Creates a team with this many lots, of 1, 2, 3, ... credits.
    async fn team(store: &Store, lots: u32) -> TeamId {
        let id = accounts::create_team(store, "a team", 0, NOW).await.unwrap().team;
        for credits in 1..=lots {
            accounts::grant_prepaid(
                store,
                id,
                credits,
                &format!("=order {}", Uuid::from_u128(id.0.as_u128() + u128::from(credits))),
                NOW,
            )
            .await
            .unwrap();
        }
        id
    }

    async fn store() -> Store {
        let store = Store::open("sqlite::memory:").await.unwrap();
        store.migrate().await.unwrap();
        store
    }

    #[tokio::test]
    async fn pages_cover_all_entries_without_gaps() {
        let store = store().await;
        let (team, other) = (team(&store, 5).await, team(&store, 3).await);
        let mut amounts = Vec::new();
        let mut before = None;
        let mut pages = 0;
        loop {
            let next = page(&store, team, before, 2).await.unwrap();
            amounts.extend(next.entries.iter().map(|entry| entry.amount));
            before = next.before;
            pages += 1;
            if before.is_none() {
                break;
            }
        }
        assert_eq!((amounts, pages), (vec![5, 4, 3, 2, 1], 3));
        assert_eq!(page(&store, other, None, 3).await.unwrap().before, None);
    }

    #[tokio::test]
    async fn csv_is_identical_for_every_chunk_size_and_fails_when_the_database_fails() {
        let store = store().await;
        let (team, empty_team) = (team(&store, 5).await, team(&store, 0).await);
        let mut files = Vec::new();
        for chunk in [1, 2, 5, 500] {
            let chunks: Vec<Bytes> = chunks(store.clone(), team, chunk).try_collect().await.unwrap();
            assert_eq!(chunks.len() as u32, 1 + 5_u32.div_ceil(chunk));
            files.push(String::from_utf8(chunks.concat()).unwrap());
        }
        assert!(files.iter().all(|file| *file == files[0]), "{files:?}");
        let lines: Vec<&str> = files[0].split_terminator("\r\n").collect();
        assert_eq!(lines.len(), 6);
        assert!(lines[1].contains(",grant,5,") && lines[1].contains(",'=order "), "{lines:?}");
        let empty: Vec<Bytes> = super::chunks(store.clone(), empty_team, 2).try_collect().await.unwrap();
        assert_eq!(empty, [csv::head()]);
        // A truncated file ends with an error.
        let mut broken = Box::pin(super::chunks(store.clone(), team, 2));
        broken.try_next().await.unwrap();
        broken.try_next().await.unwrap();
        store.close().await;
        assert_eq!(broken.try_next().await, Err(Fault::Unavailable));
    }
}
