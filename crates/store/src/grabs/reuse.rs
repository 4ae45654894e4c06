//! Answers a create with an earlier grab that shows the same, which costs nothing.

use grabd_domain::Timestamp;
use grabd_domain::credentials::Environment;
use grabd_domain::grabs::Grab;
use grabd_domain::idempotency::Fingerprint;
use grabd_domain::ids::{GrabId, KeyId, TeamId};
use grabd_domain::storage::StorageCeiling;
use sea_orm::sea_query::LockType;
use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait};
use uuid::Uuid;

use crate::Result;
use crate::areas::Grabs;
use crate::codes::DONE;
use crate::database::{Transaction, Tx};
use crate::entities::{grab, team};
use crate::grabs::idempotency::{NewRecord, Repeat, check_key, store_key};
use crate::grabs::stored_bytes::is_reached;

/// A request that an earlier grab may answer.
#[derive(Clone, Debug)]
pub struct ReuseGrab {
    /// The team of both grabs.
    pub team: TeamId,
    /// The environment of both grabs.
    pub environment: Environment,
    /// Fingerprint of the options that determine the image.
    pub fingerprint: Fingerprint,
    /// The earliest end of the earlier grab.
    pub since: Timestamp,
    /// If the caller may not read what others created: the key that created the earlier grab.
    pub only_of: Option<KeyId>,
    /// Current time. Placeholders may end in the future; those are not used.
    pub now: Timestamp,
}

/// A grab that answers a create with an idempotency key.
#[derive(Clone, Debug)]
struct AnswerKey {
    reuse: ReuseGrab,
    record: NewRecord,
    ceiling: Option<StorageCeiling>,
}

impl Grabs<'_> {
    /// The latest done grab with this fingerprint whose image exists. One indexed read.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn find_reusable(self, reuse: &ReuseGrab) -> Result<Option<Grab>> {
        find(self.store.database.reader(), reuse).await
    }

    /// Like [`Self::find_reusable`], and stores the idempotency key with the grab that was found, so that a repeated
    /// request gets the same answer. If the key was used before, returns the outcome. None if there is no grab: then
    /// nothing is stored. A team that has reached the ceiling stores no key.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn reuse(
        self,
        reuse: ReuseGrab,
        record: NewRecord,
        ceiling: Option<StorageCeiling>,
    ) -> Result<Option<ReuseOutcome>> {
        self.store.database.write(AnswerKey { reuse, record, ceiling }).await
    }
}

impl Grabs<'_> {
    /// Whether this API key has created this grab. One indexed read.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn is_grab_of_key(self, grab: GrabId, key: KeyId) -> Result<bool> {
        let found = grab::Entity::find_by_id(grab.0).filter(grab::Column::KeyId.eq(key.0)).select_only();
        let found: Option<Uuid> = found.column(grab::Column::Id).into_tuple().one(self.store.database.reader()).await?;
        Ok(found.is_some())
    }
}

/// Outcome of [`Grabs::reuse`](crate::areas::Grabs::reuse).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReuseOutcome {
    /// The grab answers the request.
    Found(Box<Grab>),
    /// The idempotency key was used before.
    Repeated(Repeat),
    /// Nothing was stored: the team has reached its ceiling of stored bytes.
    StorageFull,
}

impl Transaction for AnswerKey {
    type Outcome = Option<ReuseOutcome>;
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<Option<ReuseOutcome>> {
        let ReuseGrab { team, environment, now, .. } = self.reuse;
        // Serializes concurrent requests with the same key.
        team::Entity::find_by_id(team.0).lock(LockType::NoKeyUpdate).one(tx).await?;
        if let Some(repeat) = check_key(tx, team, environment, &self.record, now).await? {
            return Ok(Some(ReuseOutcome::Repeated(repeat)));
        }
        let Some(grab) = find(tx, &self.reuse).await? else { return Ok(None) };
        if let Some(ceiling) = self.ceiling
            && tx.query_one(&is_reached(team, ceiling)).await?.is_some()
        {
            return Ok(Some(ReuseOutcome::StorageFull));
        }
        store_key(tx, team, environment, &self.record, grab.id, true, now).await?;
        Ok(Some(ReuseOutcome::Found(Box::new(grab))))
    }
}

async fn find<C: ConnectionTrait>(db: &C, reuse: &ReuseGrab) -> Result<Option<Grab>> {
    let ReuseGrab { team, environment, fingerprint, since, only_of, now } = reuse;
    let latest = grab::scoped(*team, *environment)
        .filter(grab::Column::Fingerprint.eq(fingerprint.to_vec()))
        .filter(grab::Column::ImageKey.is_not_null())
        .filter(grab::Column::FinishedAt.gte(since.as_ms()))
        .filter(grab::Column::FinishedAt.lte(now.as_ms()))
        .filter(grab::has_status(DONE))
        .apply_if(*only_of, |grabs, only| grabs.filter(grab::Column::KeyId.eq(only.0)))
        .order_by_desc(grab::Column::FinishedAt)
        .one(db)
        .await?;
    latest.map(|row| grab::read(row, None)).transpose()
}
