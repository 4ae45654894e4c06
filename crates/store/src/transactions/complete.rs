//! T3: the holder of the lease has a picture. The grab is done and its credit is spent.

use grabd_domain::Timestamp;
use grabd_domain::credits::EntryKind;
use grabd_domain::grabs::{Facts, Grab, ImageKey};
use grabd_domain::ids::{GrabId, LeaseToken};
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{CaseStatement, Expr, ExprTrait};
use sea_orm::{ColumnTrait, EntityTrait, PaginatorTrait, QueryFilter};

use super::images::collect;
use super::webhooks::owe::owe;
use crate::codes::{self, DONE, OPEN};
use crate::database::{Transaction, Tx};
use crate::entities::{grab, job, ledger, lot};
use crate::{Error, Result, Store};

/// A finished picture.
#[derive(Clone, Debug)]
pub struct Completion {
    /// Whose picture it is.
    pub grab: GrabId,
    /// The lease it was made under.
    pub token: LeaseToken,
    /// Where it was put.
    pub upload_key: ImageKey,
    /// Size of the file.
    pub size_bytes: u64,
    /// How long it took.
    pub execution_ms: u32,
    /// What was seen.
    pub facts: Facts,
    /// When.
    pub now: Timestamp,
}

/// A grab that this very call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// As it is now.
    pub grab: Grab,
}

impl Store {
    /// Ends a grab with a picture and spends its credit; `None` when the lease is no longer held.
    ///
    /// Then nothing changes, and the picture is collected, unless it is the one the grab already ended with: a repeat
    /// after a lost answer is harmless.
    ///
    /// # Errors
    /// Only of the database. After [`Error::Unavailable`] it may have happened; repeat it.
    pub async fn complete(&self, completion: Completion) -> Result<Option<Ended>> {
        self.database.write(completion).await
    }
}

impl Transaction for Completion {
    type Outcome = Option<Ended>;

    async fn apply(&self, tx: &Tx) -> Result<Option<Ended>> {
        let Some(job) = self.take_job(tx).await? else {
            self.collect_stale(tx).await?;
            return Ok(None);
        };
        let grab = self.finish(tx, &job).await?;
        spend_credit(tx, &job, self.now).await?;
        owe(tx, &grab, self.now).await?;
        Ok(Some(Ended { grab }))
    }
}

impl Completion {
    /// The fence: done, failed, timed out and given up all delete the job, and exactly one of them finds it.
    async fn take_job(&self, tx: &Tx) -> Result<Option<job::Model>> {
        let mut taken = job::Entity::delete_many()
            .filter(job::Column::GrabId.eq(self.grab.0))
            .filter(job::Column::LeaseToken.eq(self.token.0))
            .exec_with_returning(tx)
            .await?;
        Ok(taken.pop())
    }

    async fn collect_stale(&self, tx: &Tx) -> Result<()> {
        let kept = grab::Entity::find().filter(grab::Column::ImageKey.eq(self.upload_key.as_str())).count(tx).await?;
        if kept == 0 { collect(tx, self.upload_key.as_str(), self.now).await } else { Ok(()) }
    }

    async fn finish(&self, tx: &Tx, job: &job::Model) -> Result<Grab> {
        if job.upload_key()?.as_ref() != Some(&self.upload_key) {
            return Err(Error::Inconsistent("a picture under another key than the lease's"));
        }
        // Deleted while it was rendered: the render is paid, the picture goes at once.
        let kept: Expr = CaseStatement::new()
            .case(Expr::col(grab::Column::DeletedAt).is_null(), Expr::value(self.upload_key.as_str()))
            .finally(Expr::value(Option::<String>::None))
            .into();
        let row = grab::Entity::update_many()
            .col_expr(grab::Column::Status, Expr::value(DONE))
            .col_expr(grab::Column::FinishedAt, Expr::value(self.now.as_ms()))
            .col_expr(grab::Column::ImageKey, kept)
            .col_expr(grab::Column::Bytes, Expr::value(size(self.size_bytes)))
            .col_expr(grab::Column::ExecutionMs, Expr::value(milliseconds(self.execution_ms)))
            .col_expr(grab::Column::Facts, Expr::value(grab::write_facts(&self.facts)?))
            .col_expr(grab::Column::Attempts, Expr::value(job.attempt))
            .filter(grab::Column::Id.eq(self.grab.0))
            .filter(grab::Column::Status.eq(OPEN))
            .exec_with_returning(tx)
            .await?
            .pop()
            .ok_or(Error::Inconsistent("a job without an open grab"))?;
        if row.image_key.is_none() {
            collect(tx, self.upload_key.as_str(), self.now).await?;
        }
        grab::read(row, None)
    }
}

/// The held credit is spent, and the ledger says for what. The unique index on the grab refuses a second time.
async fn spend_credit(tx: &Tx, job: &job::Model, now: Timestamp) -> Result<()> {
    let spent = lot::Entity::update_many()
        .col_expr(lot::Column::Remaining, Expr::col(lot::Column::Remaining).sub(1))
        .col_expr(lot::Column::Held, Expr::col(lot::Column::Held).sub(1))
        .filter(lot::Column::Id.eq(job.lot_id))
        .exec(tx)
        .await?;
    if spent.rows_affected != 1 {
        return Err(Error::Inconsistent("a job without its lot"));
    }
    let entry = ledger::ActiveModel {
        team_id: Set(job.team_id),
        lot_id: Set(job.lot_id),
        kind: Set(codes::entry_kind(EntryKind::Spend)),
        amount: Set(-1),
        grab_id: Set(Some(job.grab_id)),
        at: Set(now.as_ms()),
        ..Default::default()
    };
    ledger::Entity::insert(entry).exec_without_returning(tx).await?;
    Ok(())
}

/// No file is larger than the column.
pub(super) fn size(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// No render lasts longer than the column.
pub(super) fn milliseconds(ms: u32) -> i32 {
    i32::try_from(ms).unwrap_or(i32::MAX)
}
