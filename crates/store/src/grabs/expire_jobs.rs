//! Fails grabs whose deadline has passed, each in its own transaction.

use futures::{StreamExt, TryStreamExt, stream};
use grabd_domain::Timestamp;
use grabd_domain::faults::ErrorCause;
use grabd_domain::grabs::{Class, Failure, FailureReason, Grab, RenderMetadata};
use grabd_domain::ids::GrabId;
use grabd_domain::limits::{ASYNC_DEADLINE, MAX_ATTEMPTS, SYNC_DEADLINE};
use sea_orm::{ColumnTrait, EntityTrait, FromQueryResult, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

use crate::areas::Grabs;
use crate::entities::job;
use crate::grabs::complete::EndedGrab;
use crate::grabs::fail::{FailGrab, FailureSource};
use crate::grabs::reclaim::CONCURRENCY;
use crate::grabs::release::BACK_OFF;
use crate::padded::padded;
use crate::set_aside::MaybeReadable;
use crate::{Result, codes};

impl Grabs<'_> {
    /// Fails up to `limit` open grabs whose deadline has passed and returns the ended grabs. Rows that cannot be
    /// processed are set aside.
    ///
    /// # Errors
    /// Errors of the database as a whole. Grabs ended before the error stay ended.
    pub async fn expire_jobs(self, now: Timestamp, limit: u32) -> Result<Vec<Grab>> {
        let overdue = job::Entity::find()
            .select_only()
            .columns([job::Column::GrabId, job::Column::Class, job::Column::LeaseUntil, job::Column::NotBefore])
            .filter(job::Column::DeadlineAt.lte(now.as_ms()))
            .filter(job::Column::GrabId.is_not_in(padded(self.store.set_aside.keys::<Uuid>(WORK, now))))
            .order_by_asc(job::Column::DeadlineAt)
            .limit(u64::from(limit))
            .into_model::<MaybeReadable<Uuid, Overdue>>()
            .all(self.store.database.reader())
            .await?;
        let ended: Vec<_> = stream::iter(self.store.set_aside.readable(WORK, overdue, now))
            .map(|row| async move {
                let ended = self.expire(&row, now).await;
                self.store.set_aside.unless_row_fails(WORK, &row.grab_id, now, ended)
            })
            .buffered(CONCURRENCY)
            .try_collect()
            .await?;
        Ok(ended.into_iter().flatten().flatten().map(|ended| ended.grab).collect())
    }

    async fn expire(self, row: &Overdue, now: Timestamp) -> Result<Option<EndedGrab>> {
        // A grab that waits at its deadline did not fail because of its page, but because of the queue, or because its
        // account used up its budget.
        let is_delayed = Timestamp::from_ms(row.not_before) > now + BACK_OFF * MAX_ATTEMPTS;
        let cause = match row.lease_until {
            Some(_) => ErrorCause::Target,
            None if is_delayed => ErrorCause::Request,
            None => ErrorCause::Service,
        };
        let failure = timeout_failure(codes::read_class(row.class)?).caused_by(cause);
        let (source, metadata) = (FailureSource::Deadline, RenderMetadata::default());
        self.fail(FailGrab { grab: GrabId(row.grab_id), source, failure, metadata, now }).await
    }
}

#[derive(FromQueryResult)]
struct Overdue {
    grab_id: Uuid,
    class: i16,
    lease_until: Option<i64>,
    not_before: i64,
}

const WORK: &str = "deadlines";

/// The failure of a grab that passed its deadline.
pub fn timeout_failure(class: Class) -> Failure {
    let seconds = match class {
        Class::Sync => SYNC_DEADLINE,
        Class::Async => ASYNC_DEADLINE,
    }
    .as_secs();
    Failure::new(FailureReason::RenderFailed, format!("The capture timed out: it was not finished within {seconds} s."))
}
