//! Applies a change, or a batch of changes, to PostgreSQL in one transaction.

use sea_orm::TransactionTrait;

use super::server::{IsLost, Server};
use super::transaction::{Transaction, Tx};
use crate::Result;

/// How often a change is tried when the server aborts it because of concurrent transactions.
const ATTEMPTS: u32 = 5;

/// Makes a change, again if the server aborts it because of concurrent transactions.
///
/// # Errors
/// Those of the change. After [`crate::Error::Unavailable`] the change may have been committed.
pub(super) async fn write<T: Transaction>(server: &Server, change: &T) -> Result<T::Outcome> {
    let mut attempt = 1;
    loop {
        match try_write(server, change).await.flatten() {
            Err(error) if error.is_transient() && attempt < ATTEMPTS => attempt += 1,
            result => return result,
        }
    }
}

/// Makes a change. The inner error: nothing was changed.
///
/// # Errors
/// [`crate::Error::Unavailable`] if the connection was lost: the change may have been committed.
pub(super) async fn try_write<T: Transaction>(server: &Server, change: &T) -> Result<Result<T::Outcome>> {
    let tx = begin(server).await?;
    // On the heap: the statements of a change together are large, and callers make several changes.
    let applied = Box::pin(async move {
        match change.apply(&tx).await {
            Ok(outcome) => {
                tx.commit().await?;
                Ok(Ok(outcome))
            }
            Err(error) => {
                // If the rollback fails, the connection is lost and the server rolls back.
                drop(tx.rollback().await);
                if error.is_connection_lost() { Err(error) } else { Ok(Err(error)) }
            }
        }
    });
    server.run(applied).await
}

async fn begin(server: &Server) -> Result<Tx> {
    Ok(server.run_repeatable(|pool| async move { pool.begin().await }).await?)
}
