//! Releases lost leases, each in its own transaction. One transaction for all would lock several lots in an
//! inconsistent order.

use futures::{StreamExt, TryStreamExt, stream};
use grabd_domain::Timestamp;
use grabd_domain::ids::{GrabId, LeaseToken, SessionId};
use sea_orm::{ColumnTrait, Condition, EntityTrait, FromQueryResult, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

use crate::areas::Grabs;
use crate::entities::job;
use crate::grabs::release::{Release, ReleaseOutcome};
use crate::nodes::holder_is_dead;
use crate::padded::padded;
use crate::set_aside::MaybeReadable;
use crate::{Error, Result};

/// Concurrent transactions.
pub(super) const CONCURRENCY: usize = 8;

/// Which leases to release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LostLeases {
    /// Expired leases.
    Expired,
    /// Leases of a lost renderer session.
    Session(SessionId),
    /// All leases, when the only service process has just started.
    All,
    /// Leases of processes of the cluster that are dead, or no longer members.
    DeadNodes,
}

impl Grabs<'_> {
    /// Releases up to `limit` lost leases, in the order of their expiry. Rows that cannot be processed are set aside.
    ///
    /// # Errors
    /// Errors of the database as a whole. Leases released before the error stay released.
    pub async fn reclaim_leases(
        self,
        selection: LostLeases,
        now: Timestamp,
        limit: u32,
    ) -> Result<Vec<(GrabId, ReleaseOutcome)>> {
        let released: Vec<_> = stream::iter(self.leases_of(selection, now, limit).await?)
            .map(|lease| async move {
                let released = self.reclaim(&lease, now).await;
                self.store.set_aside.unless_row_fails(WORK, &lease.grab_id, now, released)
            })
            .buffered(CONCURRENCY)
            .try_collect()
            .await?;
        Ok(released.into_iter().flatten().collect())
    }

    async fn reclaim(self, lease: &Lease, now: Timestamp) -> Result<(GrabId, ReleaseOutcome)> {
        let grab = GrabId(lease.grab_id);
        let token = LeaseToken(lease.lease_token.ok_or(Error::Inconsistent("lease without a token"))?);
        Ok((grab, self.store.database.write(Release { grab, token, now }).await?))
    }

    async fn leases_of(self, selection: LostLeases, now: Timestamp, limit: u32) -> Result<Vec<Lease>> {
        let condition = match selection {
            LostLeases::Expired => Condition::all().add(job::Column::LeaseUntil.lte(now.as_ms())),
            LostLeases::Session(session) => Condition::all().add(job::Column::SessionId.eq(session.0)),
            LostLeases::All => Condition::all(),
            LostLeases::DeadNodes => holder_is_dead(self.store.kind()),
        };
        let rows = job::Entity::find()
            .select_only()
            .columns([job::Column::GrabId, job::Column::LeaseToken])
            .filter(job::Column::LeaseUntil.is_not_null())
            .filter(condition)
            .filter(job::Column::GrabId.is_not_in(padded(self.store.set_aside.keys::<Uuid>(WORK, now))))
            .order_by_asc(job::Column::LeaseUntil)
            .limit(u64::from(limit))
            .into_model::<MaybeReadable<Uuid, Lease>>()
            .all(self.store.database.reader())
            .await?;
        Ok(self.store.set_aside.readable(WORK, rows, now))
    }
}

#[derive(FromQueryResult)]
struct Lease {
    grab_id: Uuid,
    lease_token: Option<Uuid>,
}

const WORK: &str = "leases";
