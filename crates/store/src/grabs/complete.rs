//! T3: completes a leased grab with an image and spends its credit.

use grabd_domain::Timestamp;
use grabd_domain::grabs::{Grab, ImageKey, RenderMetadata};
use grabd_domain::ids::{GrabId, LeaseToken};
use sea_orm::sea_query::{CaseStatement, Expr, ExprTrait};
use sea_orm::{ColumnTrait, EntityTrait, PaginatorTrait, QueryFilter};

use crate::codes::{DONE, OPEN, milliseconds, size};
use crate::credits::held::spend_credit;
use crate::database::{Transaction, Tx};
use crate::entities::{grab, job};
use crate::grabs::files::add_files;
use crate::grabs::images::schedule_deletion;
use crate::webhooks::enqueue::enqueue_deliveries;
use crate::{Error, Result, Store};

/// A finished image.
#[derive(Clone, Debug)]
pub struct Completion {
    /// The grab.
    pub grab: GrabId,
    /// Token of the lease.
    pub token: LeaseToken,
    /// Key the image was stored under.
    pub upload_key: ImageKey,
    /// Size of the image file.
    pub size_bytes: u64,
    /// Duration of the render.
    pub execution_ms: u32,
    /// Metadata of the render.
    pub metadata: RenderMetadata,
    /// Current time.
    pub now: Timestamp,
}

/// A grab that this call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedGrab {
    /// Its final state.
    pub grab: Grab,
}

impl Store {
    /// Ends a grab with an image and spends its credit. `None` when the lease is no longer held.
    ///
    /// Without the lease nothing changes and the image is scheduled for deletion, unless the grab already ended with
    /// it. So a retry after a lost response is harmless.
    ///
    /// # Errors
    /// Database errors only. After [`Error::Unavailable`] the change may have been committed; retry it.
    pub async fn complete(&self, completion: Completion) -> Result<Option<EndedGrab>> {
        self.database.write(completion).await
    }
}

impl Transaction for Completion {
    type Outcome = Option<EndedGrab>;
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<Option<EndedGrab>> {
        let Some(job) = self.take_job(tx).await? else {
            self.discard_stale_image(tx).await?;
            return Ok(None);
        };
        let grab = self.finish(tx, &job).await?;
        spend_credit(tx, &job, self.now).await?;
        enqueue_deliveries(tx, &grab, self.now).await?;
        Ok(Some(EndedGrab { grab }))
    }
}

impl Completion {
    /// The fence: every transition to an end state deletes the job, and exactly one of them finds it.
    async fn take_job(&self, tx: &Tx) -> Result<Option<job::Model>> {
        let mut taken = job::Entity::delete_many()
            .filter(job::Column::GrabId.eq(self.grab.0))
            .filter(job::Column::LeaseToken.eq(self.token.0))
            .exec_with_returning(tx)
            .await?;
        Ok(taken.pop())
    }

    async fn discard_stale_image(&self, tx: &Tx) -> Result<()> {
        let references =
            grab::Entity::find().filter(grab::Column::ImageKey.eq(self.upload_key.as_str())).count(tx).await?;
        if references == 0 { schedule_deletion(tx, self.upload_key.as_str(), self.now).await } else { Ok(()) }
    }

    async fn finish(&self, tx: &Tx, job: &job::Model) -> Result<Grab> {
        if job.upload_key()?.as_ref() != Some(&self.upload_key) {
            return Err(Error::Inconsistent("image key differs from the lease's upload key"));
        }
        // If the grab was deleted during the render, the credit is spent and the image is deleted at once.
        let image_key: Expr = CaseStatement::new()
            .case(Expr::col(grab::Column::DeletedAt).is_null(), Expr::value(self.upload_key.as_str()))
            .finally(Expr::value(Option::<String>::None))
            .into();
        let row = grab::Entity::update_many()
            .col_expr(grab::Column::Status, Expr::value(DONE))
            .col_expr(grab::Column::FinishedAt, Expr::value(self.now.as_ms()))
            .col_expr(grab::Column::ImageKey, image_key)
            .col_expr(grab::Column::Bytes, Expr::value(size(self.size_bytes)))
            .col_expr(grab::Column::ExecutionMs, Expr::value(milliseconds(self.execution_ms)))
            .col_expr(grab::Column::Facts, Expr::value(grab::write_facts(&self.metadata)?))
            .col_expr(grab::Column::Attempts, Expr::value(job.attempt))
            .filter(grab::Column::Id.eq(self.grab.0))
            .filter(grab::has_status(OPEN))
            .exec_with_returning(tx)
            .await?
            .pop()
            .ok_or(Error::Inconsistent("job without an open grab"))?;
        add_files(tx, &row, &self.metadata).await?;
        if row.image_key.is_none() {
            schedule_deletion(tx, self.upload_key.as_str(), self.now).await?;
        }
        grab::read(row, None)
    }
}
