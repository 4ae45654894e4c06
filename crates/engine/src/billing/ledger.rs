//! The ledger, in pages and as a CSV file.

use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use grabd_domain::Fault;
use grabd_domain::capture::CaptureSpec;
use grabd_domain::credits::EntryKind;
use grabd_domain::ids::TeamId;
use grabd_store::Store;
use grabd_store::credits::Entry;

use super::ledger_row::{Captured, LedgerRow};
use super::{csv, stripe};
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
    pub entries: Vec<LedgerRow>,
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
    page(&core.store, team, Start { before, balance: None }, limit).await
}

/// A team's whole ledger as CSV (RFC 4180), newest entry first. It is read in chunks on demand: a slow reader holds one
/// chunk in memory and no database connection. Entries added meanwhile are not included.
///
/// Without `with_hosts`, it does not say which pages were captured.
///
/// The stream ends with an error when the database fails; the file must not look complete then.
pub fn ledger_csv(
    core: &Core,
    team: TeamId,
    with_hosts: bool,
) -> impl Stream<Item = Result<Bytes, Fault>> + Send + use<> {
    chunks(core.store.clone(), team, CHUNK, with_hosts)
}

/// Where a page starts.
#[derive(Clone, Copy, Debug, Default)]
struct Start {
    /// The entry before which it starts. `None`: with the newest.
    before: Option<i64>,
    /// The balance after the first entry, if it is known.
    balance: Option<i64>,
}

fn chunks(store: Store, team: TeamId, chunk: u32, with_hosts: bool) -> impl Stream<Item = Result<Bytes, Fault>> + Send {
    let rows = stream::try_unfold(Some(Start::default()), move |next: Option<Start>| {
        let store = store.clone();
        async move {
            let Some(start) = next else { return Ok(None) };
            let LedgerPage { mut entries, before } =
                page(&store, team, start, chunk).await.map_err(Error::into_fault)?;
            // The balance is carried on: adding up the ledger for each part of the file would take long.
            let balance = entries.last().map(|row| row.balance - i64::from(row.entry.amount));
            if !with_hosts {
                entries.iter_mut().for_each(|row| row.captured = None);
            }
            let next = before.map(|before| Start { before: Some(before), balance });
            Ok((!entries.is_empty()).then(|| (csv::rows(&entries), next)))
        }
    });
    stream::once(async { Ok(csv::head()) }).chain(rows)
}

async fn page(store: &Store, team: TeamId, start: Start, limit: u32) -> Result<LedgerPage, Error> {
    // One more entry shows whether there is another page.
    let mut entries = store.credits().ledger(team, start.before, limit + 1).await?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let has_more = entries.len() > limit;
    entries.truncate(limit);
    let before = entries.last().map(|last| last.id).filter(|_| has_more);
    let balance = match (start.balance, entries.first()) {
        (Some(balance), _) => balance,
        (None, Some(first)) => store.credits().balance_after(team, first.id).await?,
        (None, None) => 0,
    };
    Ok(LedgerPage { entries: rows(store, team, entries, balance).await?, before })
}

/// Adds to entries what is known about them. `balance` is that after the first one, which is the newest.
async fn rows(store: &Store, team: TeamId, entries: Vec<Entry>, balance: i64) -> Result<Vec<LedgerRow>, Error> {
    let grabs: Vec<_> = entries.iter().filter_map(|entry| entry.grab).collect();
    let specs = store.grabs().specs(team, &grabs).await?;
    let payments: Vec<String> = entries.iter().filter_map(payment).map(str::to_owned).collect();
    let mut receipts = store.credits().receipts(&payments).await?;
    let mut after = balance;
    let row = |entry: Entry| {
        let balance = after;
        after -= i64::from(entry.amount);
        let captured = entry.grab.and_then(|grab| specs.get(&grab)).map(captured);
        let receipt = payment(&entry).and_then(|payment| receipts.remove(payment));
        LedgerRow { entry, balance, captured, receipt }
    };
    Ok(entries.into_iter().map(row).collect())
}

/// The reference of the payment behind a purchase.
fn payment(entry: &Entry) -> Option<&str> {
    entry.reference.as_deref().filter(|reference| entry.kind == EntryKind::Grant && stripe::is_payment(reference))
}

fn captured(spec: &CaptureSpec) -> Captured {
    if spec.has_own_document() { Captured::Document } else { Captured::Host(spec.url.host().to_string()) }
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
        let (mut amounts, mut balances) = (Vec::new(), Vec::new());
        let mut before = None;
        let mut pages = 0;
        loop {
            let next = page(&store, team, Start { before, balance: None }, 2).await.unwrap();
            amounts.extend(next.entries.iter().map(|row| row.entry.amount));
            balances.extend(next.entries.iter().map(|row| row.balance));
            before = next.before;
            pages += 1;
            if before.is_none() {
                break;
            }
        }
        assert_eq!((amounts, balances, pages), (vec![5, 4, 3, 2, 1], vec![15, 10, 6, 3, 1], 3));
        assert_eq!(page(&store, other, Start::default(), 3).await.unwrap().before, None);
    }

    #[tokio::test]
    async fn csv_is_identical_for_every_chunk_size_and_fails_when_the_database_fails() {
        let store = store().await;
        let (team, empty_team) = (team(&store, 5).await, team(&store, 0).await);
        let mut files = Vec::new();
        for chunk in [1, 2, 5, 500] {
            let chunks: Vec<Bytes> = chunks(store.clone(), team, chunk, true).try_collect().await.unwrap();
            assert_eq!(chunks.len() as u32, 1 + 5_u32.div_ceil(chunk));
            files.push(String::from_utf8(chunks.concat()).unwrap());
        }
        assert!(files.iter().all(|file| *file == files[0]), "{files:?}");
        let lines: Vec<&str> = files[0].split_terminator("\r\n").collect();
        assert_eq!(lines.len(), 6);
        assert!(lines[1].contains(",grant,5,") && lines[1].contains(",'=order "), "{lines:?}");
        let balances: Vec<&str> = lines[1..].iter().filter_map(|line| line.rsplit(',').next()).collect();
        assert_eq!(balances, ["15", "10", "6", "3", "1"]);
        let empty: Vec<Bytes> = super::chunks(store.clone(), empty_team, 2, true).try_collect().await.unwrap();
        assert_eq!(empty, [csv::head()]);
        // A truncated file ends with an error.
        let mut broken = Box::pin(super::chunks(store.clone(), team, 2, true));
        broken.try_next().await.unwrap();
        broken.try_next().await.unwrap();
        store.close().await;
        assert_eq!(broken.try_next().await, Err(Fault::Unavailable));
    }
}
