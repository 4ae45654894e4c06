//! T6 for many: grabs whose deadline is over fail, each in a transaction of its own.

use futures::{StreamExt, TryStreamExt, stream};
use grabd_domain::Timestamp;
use grabd_domain::grabs::{Class, Facts, Failure, FailureReason, Grab};
use grabd_domain::ids::GrabId;
use grabd_domain::limits::{ASYNC_DEADLINE, SYNC_DEADLINE};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

use super::fail::{By, Failing};
use super::rescue::AT_ONCE;
use crate::entities::job;
use crate::{Result, Store, codes};

impl Store {
    /// Fails at most `limit` open grabs whose deadline is over, and answers those it ended.
    ///
    /// # Errors
    /// Of the database; what was ended before stays so.
    pub async fn expire_jobs(&self, now: Timestamp, limit: u32) -> Result<Vec<Grab>> {
        let overdue: Vec<(Uuid, i16)> = job::Entity::find()
            .select_only()
            .columns([job::Column::GrabId, job::Column::Class])
            .filter(job::Column::DeadlineAt.lte(now.as_ms()))
            .order_by_asc(job::Column::DeadlineAt)
            .limit(u64::from(limit))
            .into_tuple()
            .all(self.database.reader())
            .await?;
        let ended: Vec<_> = stream::iter(overdue)
            .map(|(grab, class)| async move {
                let failure = timed_out(codes::read_class(class)?);
                let (grab, by, facts) = (GrabId(grab), By::Deadline, Facts::default());
                self.fail(Failing { grab, by, failure, facts, now }).await
            })
            .buffered(AT_ONCE)
            .try_collect()
            .await?;
        Ok(ended.into_iter().flatten().map(|ended| ended.grab).collect())
    }
}

/// What the caller of a grab that ran out of time is told, whoever ends it.
pub fn timed_out(class: Class) -> Failure {
    let seconds = match class {
        Class::Sync => SYNC_DEADLINE,
        Class::Async => ASYNC_DEADLINE,
    }
    .as_secs();
    Failure::new(FailureReason::RenderFailed, format!("The capture timed out: it was not finished within {seconds} s."))
}
