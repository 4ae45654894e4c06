//! Returns the grab of a lost attempt to its old position in the queue, or fails it after the last attempt.

use std::time::Duration;

use grabd_domain::Timestamp;
use grabd_domain::grabs::{Failure, FailureReason, Grab, RenderMetadata};
use grabd_domain::ids::{GrabId, LeaseToken};
use grabd_domain::limits::MAX_ATTEMPTS;
use sea_orm::sea_query::{Expr, LockType};
use sea_orm::{ColumnTrait, EntityTrait, ModelTrait, QueryFilter, QuerySelect};
use uuid::Uuid;

use crate::Result;
use crate::areas::Grabs;
use crate::database::{Transaction, Tx};
use crate::entities::job;
use crate::grabs::fail::{discard_lost_image, end};

/// Delay before the next attempt, multiplied by the number of attempts so far: the cause of the loss may persist.
pub const BACK_OFF: Duration = Duration::from_millis(200);

/// A lease to release.
pub(super) struct Release {
    pub(super) grab: GrabId,
    pub(super) token: LeaseToken,
    pub(super) now: Timestamp,
}

/// Outcome of releasing a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "moved on at once and never stored in bulk")]
pub enum ReleaseOutcome {
    /// The grab is pending again, after this many attempts.
    Requeued(u32),
    /// That was the last attempt; the grab has failed.
    GivenUp(Grab),
    /// The lease is no longer held. Nothing changed.
    Stale,
}

impl Grabs<'_> {
    /// Releases a lease without a result.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn release(self, grab: GrabId, token: LeaseToken, now: Timestamp) -> Result<ReleaseOutcome> {
        self.store.database.write(Release { grab, token, now }).await
    }
}

impl Transaction for Release {
    type Outcome = ReleaseOutcome;
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<ReleaseOutcome> {
        let held = job::Entity::find_by_id(self.grab.0).filter(job::Column::LeaseToken.eq(self.token.0));
        let Some(job) = held.lock(LockType::Update).one(tx).await? else { return Ok(ReleaseOutcome::Stale) };
        let attempts = job.attempts()?;
        if attempts >= MAX_ATTEMPTS {
            return self.give_up(tx, job).await;
        }
        discard_lost_image(tx, &job, self.now).await?;
        job::Entity::update_many()
            .col_expr(job::Column::LeaseToken, Expr::value(Option::<Uuid>::None))
            .col_expr(job::Column::LeaseUntil, Expr::value(Option::<i64>::None))
            .col_expr(job::Column::SessionId, Expr::value(Option::<Uuid>::None))
            .col_expr(job::Column::UploadKey, Expr::value(Option::<String>::None))
            .col_expr(job::Column::NotBefore, Expr::value((self.now + BACK_OFF * attempts).as_ms()))
            .filter(job::Column::GrabId.eq(self.grab.0))
            .exec(tx)
            .await?;
        Ok(ReleaseOutcome::Requeued(attempts))
    }
}

impl Release {
    async fn give_up(&self, tx: &Tx, job: job::Model) -> Result<ReleaseOutcome> {
        job.clone().delete(tx).await?;
        let failure = Failure::new(
            FailureReason::InternalError,
            "Something went wrong on our side while the page was rendered; nothing was charged.",
        );
        Ok(ReleaseOutcome::GivenUp(end(tx, &job, &failure, &RenderMetadata::default(), self.now).await?))
    }
}
