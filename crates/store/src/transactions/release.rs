//! T5: an attempt is lost and its grab goes back to the queue, to its old place; after the last one it is given up.

use std::time::Duration;

use grabd_domain::Timestamp;
use grabd_domain::grabs::{Facts, Failure, FailureReason, Grab};
use grabd_domain::ids::{GrabId, LeaseToken};
use grabd_domain::limits::MAX_ATTEMPTS;
use sea_orm::sea_query::{Expr, LockType};
use sea_orm::{ColumnTrait, EntityTrait, ModelTrait, QueryFilter, QuerySelect};
use uuid::Uuid;

use super::fail::{collect_lost, end};
use crate::database::{Transaction, Tx};
use crate::entities::job;
use crate::{Result, Store};

/// The pause before the next attempt, for each attempt so far: what broke this one may still be broken.
pub const BACK_OFF: Duration = Duration::from_millis(200);

/// A lease to give back.
pub(super) struct Release {
    pub(super) grab: GrabId,
    pub(super) token: LeaseToken,
    pub(super) now: Timestamp,
}

/// What giving a lease back came to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "made once and moved on at once; never kept in numbers")]
pub enum Released {
    /// The grab waits again, after this many attempts.
    Again(u32),
    /// That was the last attempt; the grab has failed.
    GivenUp(Grab),
    /// The lease is not held any more. Nothing changed.
    Stale,
}

impl Store {
    /// Gives a lease back without a result.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn release(&self, grab: GrabId, token: LeaseToken, now: Timestamp) -> Result<Released> {
        self.database.write(Release { grab, token, now }).await
    }
}

impl Transaction for Release {
    type Outcome = Released;

    async fn apply(&self, tx: &Tx) -> Result<Released> {
        let held = job::Entity::find_by_id(self.grab.0).filter(job::Column::LeaseToken.eq(self.token.0));
        let Some(job) = held.lock(LockType::Update).one(tx).await? else { return Ok(Released::Stale) };
        let attempts = job.attempts()?;
        if attempts >= MAX_ATTEMPTS {
            return self.give_up(tx, job).await;
        }
        collect_lost(tx, &job, self.now).await?;
        job::Entity::update_many()
            .col_expr(job::Column::LeaseToken, Expr::value(Option::<Uuid>::None))
            .col_expr(job::Column::LeaseUntil, Expr::value(Option::<i64>::None))
            .col_expr(job::Column::SessionId, Expr::value(Option::<Uuid>::None))
            .col_expr(job::Column::UploadKey, Expr::value(Option::<String>::None))
            .col_expr(job::Column::NotBefore, Expr::value((self.now + BACK_OFF * attempts).as_ms()))
            .filter(job::Column::GrabId.eq(self.grab.0))
            .exec(tx)
            .await?;
        Ok(Released::Again(attempts))
    }
}

impl Release {
    async fn give_up(&self, tx: &Tx, job: job::Model) -> Result<Released> {
        job.clone().delete(tx).await?;
        let failure = Failure::new(
            FailureReason::InternalError,
            "Something went wrong on our side while the page was rendered; nothing was charged.",
        );
        Ok(Released::GivenUp(end(tx, &job, &failure, &Facts::default(), self.now).await?))
    }
}
