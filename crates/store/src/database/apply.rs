//! Applies changes to PostgreSQL: one, or a batch, in one transaction.

use sea_orm::TransactionTrait;

use super::server::{IsLost, Server};
use super::transaction::{Transaction, Tx};
use crate::{Error, Result};

/// How often a change is tried when the server aborts it because of concurrent transactions.
const ATTEMPTS: u32 = 5;

/// What became of a batch.
pub(super) enum BatchResult<T> {
    /// It was committed. `None`: this change was not made, and needs a transaction of its own.
    Committed(Vec<Option<T>>),
    /// Nothing was changed, because one of the changes failed.
    RolledBack(Error),
}

/// Makes one change.
///
/// # Errors
/// Those of the change. After [`Error::Unavailable`] the change may have been committed.
pub(super) async fn write<T: Transaction>(server: &Server, change: &T) -> Result<T::Outcome> {
    let mut attempt = 1;
    loop {
        match try_write(server, change).await {
            Err(error) if error.is_transient() && attempt < ATTEMPTS => attempt += 1,
            result => return result,
        }
    }
}

async fn try_write<T: Transaction>(server: &Server, change: &T) -> Result<T::Outcome> {
    let tx = begin(server).await?;
    // On the heap: the statements of a change together are large, and callers make several changes.
    let applied = Box::pin(async move {
        match change.apply(&tx).await {
            Ok(outcome) => {
                tx.commit().await?;
                Ok(outcome)
            }
            Err(error) => {
                roll_back(tx).await;
                Err(error)
            }
        }
    });
    server.run(applied).await
}

/// Makes the changes of a batch.
///
/// # Errors
/// [`Error::Unavailable`] if the connection was lost: the batch may have been committed.
pub(super) async fn write_batch<T, B>(server: &Server, batch: &B) -> Result<BatchResult<T>>
where
    B: Transaction<Outcome = Vec<Option<T>>>,
{
    let tx = begin(server).await?;
    let applied = Box::pin(async move {
        match batch.apply(&tx).await {
            Ok(outcomes) => {
                tx.commit().await?;
                Ok(BatchResult::Committed(outcomes))
            }
            Err(error) => {
                roll_back(tx).await;
                if error.is_connection_lost() { Err(error) } else { Ok(BatchResult::RolledBack(error)) }
            }
        }
    });
    server.run(applied).await
}

async fn begin(server: &Server) -> Result<Tx> {
    Ok(server.run_repeatable(|pool| async move { pool.begin().await }).await?)
}

/// If the rollback fails, the connection is lost and the server rolls back.
async fn roll_back(tx: Tx) {
    drop(tx.rollback().await);
}
