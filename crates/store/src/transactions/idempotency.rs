//! Asked twice, made once: a caller's key is kept with the grab it made, in that grab's own transaction.
//!
//! A record is a claim to an answer, and the answer is read off the grab: nothing is kept twice, and nothing can differ.

use grabd_domain::Timestamp;
use grabd_domain::credentials::Environment;
use grabd_domain::grabs::{Class, Grab, Status};
use grabd_domain::idempotency::{Decision, Fingerprint, IdempotencyKey, LIFE, Record, decide};
use grabd_domain::ids::{GrabId, TeamId};
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::OnConflict;
use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait};

use crate::codes::{self, DONE, FAILED, OPEN};
use crate::database::{Transaction, Tx};
use crate::entities::{grab, idem};
use crate::{Error, Result, Store};

/// A caller's key, and what it stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRecord {
    /// The key.
    pub key: IdempotencyKey,
    /// Of the request it came with.
    pub fingerprint: Fingerprint,
}

/// What a create comes to whose key has been used before. Nothing is created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// The grab as it was answered the first time: a synchronous one as it ended, an asynchronous one as it began.
    Replay(Box<Grab>),
    /// The first request has no answer yet.
    InFlight,
    /// The key stands for another request.
    Mismatch,
}

struct Purge {
    now: Timestamp,
    limit: u32,
}

impl Store {
    /// What a create with this key comes to, if the key has been used. Only a look: the create itself decides again,
    /// under the lock of its team.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn find_repeat(
        &self,
        team: TeamId,
        environment: Environment,
        new: &NewRecord,
        now: Timestamp,
    ) -> Result<Option<Repeat>> {
        repeat(self.database.reader(), team, environment, new, now).await
    }

    /// Forgets at most `limit` keys whose time is over, the oldest first, and answers how many those were.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn purge_keys(&self, now: Timestamp, limit: u32) -> Result<u64> {
        self.database.write(Purge { now, limit }).await
    }
}

impl Transaction for Purge {
    type Outcome = u64;

    async fn apply(&self, tx: &Tx) -> Result<u64> {
        let over = || idem::Column::CreatedAt.lte((self.now - LIFE).as_ms());
        let ended = idem::Entity::find()
            .select_only()
            .column(idem::Column::GrabId)
            .inner_join(grab::Entity)
            .filter(over())
            .filter(grab::Column::Status.ne(OPEN))
            .order_by_asc(idem::Column::CreatedAt)
            .limit(u64::from(self.limit))
            .into_query();
        let purged =
            idem::Entity::delete_many().filter(idem::Column::GrabId.in_subquery(ended)).filter(over()).exec(tx).await?;
        Ok(purged.rows_affected)
    }
}

/// What the key comes to, if it is known and its time is not over.
pub(super) async fn repeat<C: ConnectionTrait>(
    db: &C,
    team: TeamId,
    environment: Environment,
    new: &NewRecord,
    now: Timestamp,
) -> Result<Option<Repeat>> {
    let key = (team.0, codes::environment(environment), new.key.as_str().to_owned());
    let found = idem::Entity::find_by_id(key).find_also_related(grab::Entity).one(db).await?;
    let Some((known, grab)) = found else { return Ok(None) };
    let grab = grab.ok_or(Error::Inconsistent("a remembered key without its grab"))?;
    let record = read(&known, &grab, now)?;
    if record.status.is_terminal() && Timestamp::from_ms(known.created_at) + LIFE <= now {
        return Ok(None);
    }
    Ok(match decide(Some(&record), &new.fingerprint) {
        Decision::Fresh => None,
        Decision::Replay => Some(Repeat::Replay(Box::new(first_answer(grab)?))),
        Decision::InFlight => Some(Repeat::InFlight),
        Decision::Mismatch => Some(Repeat::Mismatch),
    })
}

fn read(known: &idem::Model, grab: &grab::Model, now: Timestamp) -> Result<Record> {
    let fingerprint = known.fingerprint.as_slice();
    // A slow placeholder is kept before its caller is answered, with the end that it will have.
    let has_ended = grab.finished_at.is_some_and(|at| at <= now.as_ms()) || grab.env != TEST;
    Ok(Record {
        fingerprint: fingerprint.try_into().map_err(|_| Error::Inconsistent("a fingerprint of another length"))?,
        class: codes::read_class(grab.class)?,
        status: match grab.status {
            OPEN => Status::Pending,
            DONE | FAILED if !has_ended => Status::Processing,
            DONE => Status::Done,
            FAILED => Status::Failed,
            _ => return Err(Error::Inconsistent("an unknown status")),
        },
    })
}

const TEST: i16 = codes::environment(Environment::Test);

fn first_answer(grab: grab::Model) -> Result<Grab> {
    match codes::read_class(grab.class)? {
        Class::Sync => grab::read(grab, None),
        Class::Async => grab::read_as_created(&grab),
    }
}

/// Keeps the key for the grab that was just made. A record that is still there is one whose time is over.
pub(super) async fn remember(
    tx: &Tx,
    team: TeamId,
    environment: Environment,
    new: &NewRecord,
    grab: GrabId,
    now: Timestamp,
) -> Result<()> {
    let row = idem::ActiveModel {
        team_id: Set(team.0),
        env: Set(codes::environment(environment)),
        key: Set(new.key.as_str().to_owned()),
        fingerprint: Set(new.fingerprint.to_vec()),
        grab_id: Set(grab.0),
        created_at: Set(now.as_ms()),
    };
    let replace = OnConflict::columns([idem::Column::TeamId, idem::Column::Env, idem::Column::Key])
        .update_columns([idem::Column::Fingerprint, idem::Column::GrabId, idem::Column::CreatedAt])
        .to_owned();
    idem::Entity::insert(row).on_conflict(replace).exec_without_returning(tx).await?;
    Ok(())
}

/// Lets go of the key that a grab was made with, if it was: the next request with it is a new one.
pub(super) async fn forget(tx: &Tx, grab: GrabId) -> Result<()> {
    idem::Entity::delete_many().filter(idem::Column::GrabId.eq(grab.0)).exec(tx).await?;
    Ok(())
}
