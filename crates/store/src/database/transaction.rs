//! A change of the database as a value, and the transaction that it is applied to.

use std::future::Future;
use std::sync::Arc;

use sea_orm::DatabaseTransaction;
use uuid::Uuid;

use crate::Result;
use crate::entities::test_row::TestRow;

/// An open transaction.
pub(crate) type Tx = DatabaseTransaction;

/// The insert of a row.
pub(crate) struct RowInsert<O> {
    pub(crate) row: TestRow,
    /// The outcome if it is inserted.
    pub(crate) inserted: O,
    /// The outcome if its team has reached its ceiling.
    pub(crate) refused: O,
}

impl<O> RowInsert<O> {
    pub(crate) fn outcome(self, is_refused: bool) -> O {
        if is_refused { self.refused } else { self.inserted }
    }
}

/// One atomic change.
pub(crate) trait Transaction: Send + Sync + 'static {
    /// Result of the change. A rejection is an outcome too; an error rolls the change back.
    type Outcome: Send + 'static;

    /// Whether access never depends on what this changes: no key, token, session, user, member, grant or team. Frequent
    /// changes say so, because all others make the service look up again who may do what.
    const KEEPS_ACCESS: bool = false;

    /// If the change only inserts the row of a test grab: the row, and the outcomes. The SQLite writer inserts such rows of
    /// a batch together. All rows set the same columns.
    fn as_insert(&self) -> Option<RowInsert<Self::Outcome>> {
        None
    }

    /// Executes the statements. May run again after a rollback, so it must not keep state.
    fn apply(&self, tx: &Tx) -> impl Future<Output = Result<Self::Outcome>> + Send;
}

impl<T: Transaction> Transaction for Arc<T> {
    type Outcome = T::Outcome;
    const KEEPS_ACCESS: bool = T::KEEPS_ACCESS;

    fn as_insert(&self) -> Option<RowInsert<Self::Outcome>> {
        T::as_insert(self)
    }

    async fn apply(&self, tx: &Tx) -> Result<Self::Outcome> {
        T::apply(self, tx).await
    }
}

/// A change that is made together with others of its kind, in one transaction and with fewer statements.
pub(crate) trait BatchedTransaction: Transaction {
    /// Whether such changes only insert one row, so that the SQLite writer makes them together itself.
    const IS_INSERT: bool = false;

    /// With PostgreSQL, changes of one process with the same key are never in two batches at the same time.
    fn key(&self) -> Uuid;

    /// Executes the statements for all changes of a batch, those with the same key in their order. The outcomes have the
    /// order of the changes. `None`: the change was not made, and needs a transaction of its own.
    ///
    /// Other processes make batches too. So a batch must lock rows of several teams in the order of the teams' ids.
    fn apply_batch(changes: &[&Self], tx: &Tx) -> impl Future<Output = Result<Vec<Option<Self::Outcome>>>> + Send;
}
