//! Ends a grab without an image and releases its credit.

use grabd_domain::Timestamp;
use grabd_domain::grabs::{Failure, Grab, RenderMetadata};
use grabd_domain::ids::{GrabId, LeaseToken};
use grabd_domain::limits::LOST_IMAGE_DELAY;
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter};

use crate::areas::Grabs;
use crate::codes::{FAILED, OPEN, error_cause};
use crate::credits::held::release_credit;
use crate::database::{Transaction, Tx};
use crate::entities::{grab, job};
use crate::grabs::complete::EndedGrab;
use crate::grabs::idempotency::release_key;
use crate::grabs::images::schedule_deletion;
use crate::grabs::stored_bytes::{count_deliveries, ended_bytes, message_bytes, request_bytes};
use crate::webhooks::enqueue::enqueue_deliveries;
use crate::{Error, Result};

/// A grab to end without an image.
#[derive(Clone, Debug)]
pub struct FailGrab {
    /// The grab.
    pub grab: GrabId,
    /// What ends it.
    pub source: FailureSource,
    /// The failure reported to the caller.
    pub failure: Failure,
    /// Metadata of the render so far.
    pub metadata: RenderMetadata,
    /// Current time.
    pub now: Timestamp,
}

/// What ends a grab without an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureSource {
    /// The holder of the lease.
    Lease(LeaseToken),
    /// The deadline has passed.
    Deadline,
    /// The caller cancels the open grab.
    Cancel,
}

impl Grabs<'_> {
    /// Ends a grab without an image. `None`, without any change, when the condition of the source does not hold; also
    /// `None` when a grab that cannot be read was ended at its deadline.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn fail(self, failure: FailGrab) -> Result<Option<EndedGrab>> {
        self.store.database.write(failure).await
    }
}

impl Transaction for FailGrab {
    type Outcome = Option<EndedGrab>;
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<Option<EndedGrab>> {
        let condition = match self.source {
            FailureSource::Lease(token) => job::Column::LeaseToken.eq(token.0),
            FailureSource::Deadline => job::Column::DeadlineAt.lte(self.now.as_ms()),
            // The job exists as long as the grab is open.
            FailureSource::Cancel => job::Column::GrabId.is_not_null(),
        };
        let mut taken = job::Entity::delete_many()
            .filter(job::Column::GrabId.eq(self.grab.0))
            .filter(condition)
            .exec_with_returning(tx)
            .await?;
        let Some(job) = taken.pop() else { return Ok(None) };
        if self.source == FailureSource::Cancel {
            // A cancelled request frees its idempotency key.
            release_key(tx, self.grab).await?;
        }
        let row = end_row(tx, &job, &self.failure, &self.metadata, self.now).await?;
        match report(tx, row, self.now).await {
            Ok(grab) => Ok(Some(EndedGrab { grab })),
            // Ended all the same: otherwise its credit would be held for ever.
            Err(error @ Error::Inconsistent(_)) if self.source == FailureSource::Deadline => {
                tracing::error!(grab.id = %self.grab, %error, "a grab that cannot be read was ended at its deadline");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// Ends the grab after its job was deleted.
pub(super) async fn end(
    tx: &Tx,
    job: &job::Model,
    failure: &Failure,
    metadata: &RenderMetadata,
    now: Timestamp,
) -> Result<Grab> {
    let row = end_row(tx, job, failure, metadata, now).await?;
    report(tx, row, now).await
}

/// Reads the ended grab and enqueues its webhooks.
async fn report(tx: &Tx, row: grab::Model, now: Timestamp) -> Result<Grab> {
    let message_bytes = message_bytes(&row);
    let grab = grab::read(row, None)?;
    let deliveries = enqueue_deliveries(tx, [(&grab, now)]).await?;
    count_deliveries(tx, grab.id, deliveries, message_bytes).await?;
    Ok(grab)
}

async fn end_row(
    tx: &Tx,
    job: &job::Model,
    failure: &Failure,
    metadata: &RenderMetadata,
    now: Timestamp,
) -> Result<grab::Model> {
    let facts = grab::write_facts(metadata)?;
    let stored_bytes = ended_bytes(&facts, &failure.message, metadata);
    let row = grab::Entity::update_many()
        .col_expr(grab::Column::Status, Expr::value(FAILED))
        .col_expr(grab::Column::FinishedAt, Expr::value(now.as_ms()))
        .col_expr(grab::Column::ErrorCode, Expr::value(failure.reason.code().as_str()))
        .col_expr(grab::Column::ErrorMessage, Expr::value(failure.message.as_str()))
        .col_expr(grab::Column::ErrorCause, Expr::value(error_cause(failure.cause)))
        .col_expr(grab::Column::Facts, Expr::value(facts))
        .col_expr(grab::Column::StoredBytes, request_bytes().add(stored_bytes))
        .col_expr(grab::Column::Attempts, Expr::value(job.attempt))
        .col_expr(grab::Column::SessionId, Expr::value(job.session_id))
        .filter(grab::Column::Id.eq(job.grab_id))
        .filter(grab::has_status(OPEN))
        .exec_with_returning(tx)
        .await?
        .pop()
        .ok_or(Error::Inconsistent("job without an open grab"))?;
    release_credit(tx, job).await?;
    discard_lost_image(tx, job, now).await?;
    Ok(row)
}

/// Schedules the image of a lost attempt for deletion, after the attempt can no longer be uploading.
pub(super) async fn discard_lost_image(tx: &Tx, job: &job::Model, now: Timestamp) -> Result<()> {
    let Some(key) = job.upload_key()? else { return Ok(()) };
    let lease_ends = Timestamp::from_ms(job.lease_until.unwrap_or_else(|| now.as_ms()));
    schedule_deletion(tx, key.as_str(), lease_ends.max(now) + LOST_IMAGE_DELAY).await
}
