//! T5 for many: leases of the dead are given back, each in a transaction of its own. Several lots in one transaction
//! would be locked in an order that others do not keep.

use futures::{StreamExt, TryStreamExt, stream};
use grabd_domain::Timestamp;
use grabd_domain::ids::{GrabId, LeaseToken, SessionId};
use sea_orm::{ColumnTrait, Condition, EntityTrait, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

use super::release::{Release, Released};
use crate::entities::job;
use crate::{Error, Result, Store};

/// Transactions on the way at the same time.
pub(super) const AT_ONCE: usize = 8;

/// Whose leases are given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dead {
    /// Leases that ran out.
    Overdue,
    /// Of one session that is gone.
    Session(SessionId),
    /// All of them: the only process that serves has just started.
    All,
}

impl Store {
    /// Gives back at most `limit` leases of the dead, those that end first first.
    ///
    /// # Errors
    /// Of the database; what was given back before stays so.
    pub async fn rescue(&self, dead: Dead, now: Timestamp, limit: u32) -> Result<Vec<(GrabId, Released)>> {
        let leases = self.leases_of(dead, now, limit).await?;
        stream::iter(leases)
            .map(|(grab, token)| async move {
                let released = self.database.write(Release { grab, token, now }).await?;
                Ok((grab, released))
            })
            .buffered(AT_ONCE)
            .try_collect()
            .await
    }

    async fn leases_of(&self, dead: Dead, now: Timestamp, limit: u32) -> Result<Vec<(GrabId, LeaseToken)>> {
        let whose = match dead {
            Dead::Overdue => Condition::all().add(job::Column::LeaseUntil.lte(now.as_ms())),
            Dead::Session(session) => Condition::all().add(job::Column::SessionId.eq(session.0)),
            Dead::All => Condition::all(),
        };
        let rows: Vec<(Uuid, Option<Uuid>)> = job::Entity::find()
            .select_only()
            .columns([job::Column::GrabId, job::Column::LeaseToken])
            .filter(job::Column::LeaseUntil.is_not_null())
            .filter(whose)
            .order_by_asc(job::Column::LeaseUntil)
            .limit(u64::from(limit))
            .into_tuple()
            .all(self.database.reader())
            .await?;
        let lease = |(grab, token): (Uuid, Option<Uuid>)| {
            let token = token.ok_or(Error::Inconsistent("a lease without a token"))?;
            Ok((GrabId(grab), LeaseToken(token)))
        };
        rows.into_iter().map(lease).collect()
    }
}
