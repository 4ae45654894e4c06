//! Exports of the audit trail.

use futures::{Stream, stream};
use grabd_store::Store;
use grabd_store::audit::{AuditFilter, NamedEntry};

use crate::error::Error;

/// Entries of an export. Earlier ones are left out.
pub const MAX_EXPORTED: u32 = 10_000;
/// Entries that are read from the database at a time.
const CHUNK: u32 = 500;

/// How far an export has come.
struct Position {
    before: Option<i64>,
    left: u32,
}

/// The newest [`MAX_EXPORTED`] entries that match, in chunks, newest first. One chunk is in memory at a time, and no database
/// connection is held between chunks.
pub(crate) fn chunks(
    store: Store,
    filter: AuditFilter,
) -> impl Stream<Item = Result<Vec<NamedEntry>, Error>> + Send + use<> {
    let start = Position { before: None, left: MAX_EXPORTED };
    stream::try_unfold(start, move |Position { before, left }| {
        let (store, filter) = (store.clone(), filter.clone());
        async move {
            let wanted = left.min(CHUNK);
            if wanted == 0 {
                return Ok(None);
            }
            let entries = store.audit().search(&filter, before, wanted).await?;
            let Some(last) = entries.last() else { return Ok(None) };
            let read = u32::try_from(entries.len()).unwrap_or(u32::MAX);
            // The last chunk is known by its size.
            let left = if read < wanted { 0 } else { left.saturating_sub(read) };
            let next = Position { before: Some(last.entry.id), left };
            Ok(Some((entries, next)))
        }
    })
}

#[cfg(test)]
mod tests {
    use futures::TryStreamExt;
    use grabd_domain::Timestamp;
    use grabd_store::Actor;

    use super::*;
    use crate::accounts;

    #[tokio::test]
    async fn chunks_have_all_entries_newest_first() {
        let now = Timestamp::from_ms(1_795_206_774_120);
        let store = Store::open("sqlite::memory:").await.unwrap();
        store.migrate().await.unwrap();
        let acting = store.acting_as(Actor { name: "service".to_owned(), address: None, now });
        let team = accounts::create_team(&store, "a team", 0, now).await.unwrap().team;
        let count = usize::try_from(CHUNK).unwrap() + 3;
        for _ in 0..count {
            acting.accounts().suspend_team(team, "abuse", now).await.unwrap();
            store.accounts().restore_team(team, now).await.unwrap();
        }
        let read: Vec<_> = chunks(store.clone(), AuditFilter::default()).try_collect().await.unwrap();
        assert_eq!(read.iter().map(Vec::len).collect::<Vec<_>>(), [count - 3, 3]);
        let ids: Vec<i64> = read.iter().flatten().map(|named| named.entry.id).collect();
        assert!(ids.is_sorted_by(|a, b| a > b), "{ids:?}");
        let none = AuditFilter { actor: Some("nobody".to_owned()), ..AuditFilter::default() };
        let read: Vec<_> = chunks(store, none).try_collect().await.unwrap();
        assert_eq!(read, Vec::<Vec<NamedEntry>>::new());
    }
}
