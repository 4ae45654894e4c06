//! Idempotency keys. A key is stored with the grab it created, in the same transaction.
//!
//! The response to a repeated request is derived from the grab, so there is no stored response that could differ.

use grabd_domain::Timestamp;
use grabd_domain::credentials::Environment;
use grabd_domain::grabs::{Class, Grab, Status};
use grabd_domain::idempotency::{Decision, Fingerprint, IdempotencyKey, LIFE, Record, decide};
use grabd_domain::ids::{GrabId, KeyId, TeamId};
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::OnConflict;
use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait};

use crate::areas::Grabs;
use crate::codes::{self, DONE, FAILED, OPEN};
use crate::database::{Transaction, Tx};
use crate::entities::{grab, idem};
use crate::{Error, Result};

/// An idempotency key and the request it identifies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRecord {
    /// The key.
    pub key: IdempotencyKey,
    /// Fingerprint of the request.
    pub fingerprint: Fingerprint,
    /// If the caller may not read what others created: the key that created what answers the request.
    pub only_of: Option<KeyId>,
}

/// Outcome of a create whose key was used before. Nothing is created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// The grab as first returned: a synchronous grab in its final state, an asynchronous one as created.
    Replay(Box<Grab>),
    /// The earlier grab that answered the first request.
    Cached(Box<Grab>),
    /// The first request is still in progress.
    InFlight,
    /// The key was used for a different request, or for a grab that the caller may not read.
    Mismatch,
}

struct PurgeKeys {
    now: Timestamp,
    limit: u32,
}

impl Grabs<'_> {
    /// The outcome of a create with this key, if the key was used before. Advisory: the create checks again under the
    /// lock of its team.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn find_repeat(
        self,
        team: TeamId,
        environment: Environment,
        new: &NewRecord,
        now: Timestamp,
    ) -> Result<Option<Repeat>> {
        check_key(self.store.database.reader(), team, environment, new, now).await
    }

    /// Deletes up to `limit` expired keys, oldest first, and returns their number.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn purge_keys(self, now: Timestamp, limit: u32) -> Result<u64> {
        self.store.database.write(PurgeKeys { now, limit }).await
    }
}

impl Transaction for PurgeKeys {
    type Outcome = u64;
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<u64> {
        let is_expired = || idem::Column::CreatedAt.lte((self.now - LIFE).as_ms());
        let ended = idem::Entity::find()
            .select_only()
            .column(idem::Column::GrabId)
            .inner_join(grab::Entity)
            .filter(is_expired())
            .filter(grab::Column::Status.ne(OPEN))
            .order_by_asc(idem::Column::CreatedAt)
            .limit(u64::from(self.limit))
            .into_query();
        let purged = idem::Entity::delete_many()
            .filter(idem::Column::GrabId.in_subquery(ended))
            .filter(is_expired())
            .exec(tx)
            .await?;
        Ok(purged.rows_affected)
    }
}

/// The outcome of a repeated request, if the key exists and has not expired.
pub(super) async fn check_key<C: ConnectionTrait>(
    db: &C,
    team: TeamId,
    environment: Environment,
    new: &NewRecord,
    now: Timestamp,
) -> Result<Option<Repeat>> {
    let key = (team.0, codes::environment(environment), new.key.as_str().to_owned());
    let found = idem::Entity::find_by_id(key).find_also_related(grab::Entity).one(db).await?;
    let Some((known, grab)) = found else { return Ok(None) };
    let grab = grab.ok_or(Error::Inconsistent("idempotency key without its grab"))?;
    let record = read(&known, &grab, now)?;
    if record.status.is_terminal() && Timestamp::from_ms(known.created_at) + LIFE <= now {
        return Ok(None);
    }
    if new.only_of.is_some_and(|only| grab.key_id != Some(only.0)) {
        return Ok(Some(Repeat::Mismatch));
    }
    Ok(match decide(Some(&record), &new.fingerprint) {
        Decision::Fresh => None,
        Decision::Replay if known.cached => Some(Repeat::Cached(Box::new(grab::read(grab, None)?))),
        Decision::Replay => Some(Repeat::Replay(Box::new(first_response(grab)?))),
        Decision::InFlight => Some(Repeat::InFlight),
        Decision::Mismatch => Some(Repeat::Mismatch),
    })
}

fn read(known: &idem::Model, grab: &grab::Model, now: Timestamp) -> Result<Record> {
    let fingerprint = known.fingerprint.as_slice();
    // A delayed placeholder is stored before the response, with its future end time.
    let has_ended = grab.finished_at.is_some_and(|at| at <= now.as_ms()) || grab.env != TEST;
    Ok(Record {
        fingerprint: fingerprint.try_into().map_err(|_| Error::Inconsistent("fingerprint of the wrong length"))?,
        class: codes::read_class(grab.class)?,
        status: match grab.status {
            OPEN => Status::Pending,
            DONE | FAILED if !has_ended => Status::Processing,
            DONE => Status::Done,
            FAILED => Status::Failed,
            _ => return Err(Error::Inconsistent("unknown grab status")),
        },
    })
}

const TEST: i16 = codes::environment(Environment::Test);

fn first_response(grab: grab::Model) -> Result<Grab> {
    match codes::read_class(grab.class)? {
        Class::Sync => grab::read(grab, None),
        Class::Async => grab::read_as_created(&grab),
    }
}

/// Stores the key of a new grab, or of one that existed before and answers the request (`cached`). An existing record
/// has expired and is replaced.
pub(super) async fn store_key(
    tx: &Tx,
    team: TeamId,
    environment: Environment,
    new: &NewRecord,
    grab: GrabId,
    cached: bool,
    now: Timestamp,
) -> Result<()> {
    let row = idem::ActiveModel {
        team_id: Set(team.0),
        env: Set(codes::environment(environment)),
        key: Set(new.key.as_str().to_owned()),
        fingerprint: Set(new.fingerprint.to_vec()),
        grab_id: Set(grab.0),
        created_at: Set(now.as_ms()),
        cached: Set(cached),
    };
    let replace = OnConflict::columns([idem::Column::TeamId, idem::Column::Env, idem::Column::Key])
        .update_columns([
            idem::Column::Fingerprint,
            idem::Column::GrabId,
            idem::Column::CreatedAt,
            idem::Column::Cached,
        ])
        .to_owned();
    idem::Entity::insert(row).on_conflict(replace).exec_without_returning(tx).await?;
    Ok(())
}

/// Deletes the key of a grab, if it has one. The next request with this key is a new one.
pub(super) async fn release_key(tx: &Tx, grab: GrabId) -> Result<()> {
    idem::Entity::delete_many().filter(idem::Column::GrabId.eq(grab.0)).exec(tx).await?;
    Ok(())
}
