//! T4, T6, T7: a grab ends without a picture. Its credit is free again, nothing was taken.

use grabd_domain::Timestamp;
use grabd_domain::grabs::{Facts, Failure, Grab};
use grabd_domain::ids::{GrabId, LeaseToken};
use grabd_domain::limits::LEASE_MARGIN;
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter};

use super::complete::Ended;
use super::idempotency::forget;
use super::images::collect;
use super::webhooks::owe::owe;
use crate::codes::{FAILED, OPEN};
use crate::database::{Transaction, Tx};
use crate::entities::{grab, job, lot};
use crate::{Error, Result, Store};

/// A grab to end without a picture.
#[derive(Clone, Debug)]
pub struct Failing {
    /// Which one.
    pub grab: GrabId,
    /// By what right.
    pub by: By,
    /// What its caller is told.
    pub failure: Failure,
    /// What was seen before.
    pub facts: Facts,
    /// When.
    pub now: Timestamp,
}

/// Who may end a grab without a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Whoever holds its lease.
    Lease(LeaseToken),
    /// Anybody, once its deadline is over.
    Deadline,
    /// Its caller, as long as it is open.
    Cancel,
}

impl Store {
    /// Ends a grab without a picture; `None` when the right to do so does not hold, and then nothing changes.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn fail(&self, failing: Failing) -> Result<Option<Ended>> {
        self.database.write(failing).await
    }
}

impl Transaction for Failing {
    type Outcome = Option<Ended>;

    async fn apply(&self, tx: &Tx) -> Result<Option<Ended>> {
        let right = match self.by {
            By::Lease(token) => job::Column::LeaseToken.eq(token.0),
            By::Deadline => job::Column::DeadlineAt.lte(self.now.as_ms()),
            // The job is there as long as the grab is open.
            By::Cancel => job::Column::GrabId.is_not_null(),
        };
        let mut taken = job::Entity::delete_many()
            .filter(job::Column::GrabId.eq(self.grab.0))
            .filter(right)
            .exec_with_returning(tx)
            .await?;
        let Some(job) = taken.pop() else { return Ok(None) };
        if self.by == By::Cancel {
            // The caller took the request back, so its key is free for another one.
            forget(tx, self.grab).await?;
        }
        let grab = end(tx, &job, &self.failure, &self.facts, self.now).await?;
        Ok(Some(Ended { grab }))
    }
}

/// What follows once the job is deleted.
pub(super) async fn end(tx: &Tx, job: &job::Model, failure: &Failure, facts: &Facts, now: Timestamp) -> Result<Grab> {
    let row = grab::Entity::update_many()
        .col_expr(grab::Column::Status, Expr::value(FAILED))
        .col_expr(grab::Column::FinishedAt, Expr::value(now.as_ms()))
        .col_expr(grab::Column::ErrorCode, Expr::value(failure.reason.code().as_str()))
        .col_expr(grab::Column::ErrorMessage, Expr::value(failure.message.as_str()))
        .col_expr(grab::Column::Facts, Expr::value(grab::write_facts(facts)?))
        .col_expr(grab::Column::Attempts, Expr::value(job.attempt))
        .col_expr(grab::Column::SessionId, Expr::value(job.session_id))
        .filter(grab::Column::Id.eq(job.grab_id))
        .filter(grab::Column::Status.eq(OPEN))
        .exec_with_returning(tx)
        .await?
        .pop()
        .ok_or(Error::Inconsistent("a job without an open grab"))?;
    let freed = lot::Entity::update_many()
        .col_expr(lot::Column::Held, Expr::col(lot::Column::Held).sub(1))
        .filter(lot::Column::Id.eq(job.lot_id))
        .exec(tx)
        .await?;
    if freed.rows_affected != 1 {
        return Err(Error::Inconsistent("a job without its lot"));
    }
    collect_lost(tx, job, now).await?;
    let grab = grab::read(row, None)?;
    owe(tx, &grab, now).await?;
    Ok(grab)
}

/// Has the picture of a lost attempt deleted, once the attempt can no longer be uploading.
pub(super) async fn collect_lost(tx: &Tx, job: &job::Model, now: Timestamp) -> Result<()> {
    let Some(key) = job.upload_key()? else { return Ok(()) };
    let lease_ends = Timestamp::from_ms(job.lease_until.unwrap_or_else(|| now.as_ms()));
    collect(tx, key.as_str(), lease_ends.max(now) + LEASE_MARGIN).await
}
