//! Rows that cannot be processed. Background work covers the rows of all teams, so one bad row must not stop it: the
//! row is logged, counted and left out for a while.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use grabd_domain::Timestamp;
use parking_lot::Mutex;
use sea_orm::{DbErr, FromQueryResult, QueryResult, TryGetable};

use crate::{Error, Result};

/// How long a row is left out before it is tried again.
const SET_ASIDE: Duration = Duration::from_secs(10 * 60);
/// Maximum number of rows left out at a time. Beyond it, those that were left out longest are tried again.
const MAX_ROWS: usize = 1000;

/// The rows that are left out, and how many were set aside since the start.
#[derive(Debug, Default)]
pub(crate) struct SetAside(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Until when each row is left out, by kind of work and key.
    rows: BTreeMap<(&'static str, String), Timestamp>,
    counts: BTreeMap<&'static str, u64>,
}

impl SetAside {
    /// Leaves the row out of this work.
    pub(crate) fn add(&self, work: &'static str, key: &impl Display, error: &Error, now: Timestamp) {
        self.report(work, key, error);
        let mut state = self.0.lock();
        state.rows.insert((work, key.to_string()), now + SET_ASIDE);
        if state.rows.len() > MAX_ROWS {
            let oldest = state.rows.iter().min_by_key(|(_, until)| **until).map(|(row, _)| row.clone());
            oldest.and_then(|row| state.rows.remove(&row));
        }
    }

    /// Logs and counts a row that is skipped.
    pub(crate) fn report(&self, work: &'static str, key: &impl Display, error: &Error) {
        tracing::error!(work, row = %key, %error, cause = ?error, "a row cannot be processed and is set aside");
        let mut state = self.0.lock();
        *state.counts.entry(work).or_default() += 1;
    }

    /// The keys of the rows that are left out of this work now.
    pub(crate) fn keys<K: FromStr>(&self, work: &'static str, now: Timestamp) -> Vec<K> {
        let mut state = self.0.lock();
        state.rows.retain(|_, until| *until > now);
        state.rows.keys().filter(|(of, _)| *of == work).filter_map(|(_, key)| key.parse().ok()).collect()
    }

    /// Number of rows set aside since the start, by kind of work.
    pub(crate) fn counts(&self) -> BTreeMap<&'static str, u64> {
        self.0.lock().counts.clone()
    }

    /// The readable rows. The others are set aside.
    pub(crate) fn readable<K: Display, M>(
        &self,
        work: &'static str,
        rows: Vec<MaybeReadable<K, M>>,
        now: Timestamp,
    ) -> Vec<M> {
        let (readable, unreadable) = split_readable(rows);
        for (key, error) in unreadable {
            self.add(work, &key, &error, now);
        }
        readable
    }

    /// `None` if the row was set aside. Errors that concern more than this row are returned.
    pub(crate) fn unless_row_fails<T>(
        &self,
        work: &'static str,
        key: &impl Display,
        now: Timestamp,
        result: Result<T>,
    ) -> Result<Option<T>> {
        match result {
            Ok(outcome) => Ok(Some(outcome)),
            Err(error) if error.concerns_row() => {
                self.add(work, key, &error, now);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// A row of a query over several teams, whose columns may not be readable.
pub(crate) struct MaybeReadable<K, M> {
    /// The row's key: its first column.
    pub(crate) key: Result<K, DbErr>,
    pub(crate) row: Result<M, DbErr>,
}

impl<K: TryGetable, M: FromQueryResult> FromQueryResult for MaybeReadable<K, M> {
    fn from_query_result(row: &QueryResult, prefix: &str) -> Result<Self, DbErr> {
        Ok(Self { key: row.try_get_by_index(0), row: M::from_query_result(row, prefix) })
    }
}

/// Separates the rows that cannot be read. Rows without a readable key cannot be named, and are only logged.
pub(crate) fn split_readable<K: Display, M>(rows: Vec<MaybeReadable<K, M>>) -> (Vec<M>, Vec<(K, Error)>) {
    let (mut readable, mut unreadable) = (Vec::with_capacity(rows.len()), Vec::new());
    for MaybeReadable { key, row } in rows {
        match (row, key) {
            (Ok(row), _) => readable.push(row),
            (Err(error), Ok(key)) => unreadable.push((key, error.into())),
            (Err(error), Err(_)) => tracing::error!(%error, "a row without a readable key is skipped"),
        }
    }
    (readable, unreadable)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_000);
    const BAD: Error = Error::Inconsistent("a test");

    #[test]
    fn row_is_left_out_until_its_time_has_passed() {
        let set_aside = SetAside::default();
        set_aside.add("lots", &7, &BAD, NOW);
        assert_eq!(set_aside.keys::<i64>("lots", NOW), [7]);
        assert!(set_aside.keys::<i64>("queue", NOW).is_empty());
        assert!(set_aside.keys::<i64>("lots", NOW + SET_ASIDE).is_empty());
    }

    #[test]
    fn number_of_rows_left_out_is_bounded() {
        let set_aside = SetAside::default();
        for row in 0..MAX_ROWS + 5 {
            set_aside.add("queue", &row, &BAD, NOW + Duration::from_millis(row as u64));
        }
        let keys = set_aside.keys::<usize>("queue", NOW);
        assert_eq!((keys.len(), keys.contains(&4), keys.contains(&5)), (MAX_ROWS, false, true));
    }

    #[test]
    fn error_of_the_database_concerns_every_row() {
        let set_aside = SetAside::default();
        assert!(set_aside.unless_row_fails::<()>("queue", &1, NOW, Err(Error::Overloaded)).is_err());
        assert!(set_aside.unless_row_fails::<()>("queue", &1, NOW, Err(BAD)).unwrap().is_none());
        assert_eq!(set_aside.unless_row_fails("queue", &1, NOW, Ok(3)).unwrap(), Some(3));
    }
}
