//! T1: a live grab begins, with one credit held for it. When a slot is free it begins leased, which saves a commit.

use grabd_domain::Timestamp;
use grabd_domain::capture::CaptureSpec;
use grabd_domain::credentials::Environment;
use grabd_domain::grabs::{Class, ImageKey};
use grabd_domain::ids::{GrabId, LeaseToken, LotId, SessionId, TeamId};
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{Expr, ExprTrait, LockType, Query};
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait, Select,
};

use super::idempotency::{NewRecord, Repeat, remember, repeat};
use crate::codes::{self, ACTIVE, OPEN};
use crate::database::{Transaction, Tx};
use crate::entities::{grab, job, lot, team};
use crate::{Error, Result, Store};

/// A live grab to create.
#[derive(Clone, Debug)]
pub struct NewGrab {
    /// Its id.
    pub id: GrabId,
    /// Whose it is, and who pays.
    pub team: TeamId,
    /// How its caller waits.
    pub class: Class,
    /// What to capture.
    pub spec: CaptureSpec,
    /// When.
    pub now: Timestamp,
    /// When it fails, if it has not ended by then.
    pub deadline_at: Timestamp,
    /// Asynchronous grabs a team may have open, unless the team has a limit of its own.
    pub async_limit_default: u32,
    /// A free slot that would take it at once, if nobody waits before it.
    pub lease: Option<NewLease>,
    /// The caller's key, under which this grab is made once.
    pub idempotency: Option<NewRecord>,
}

/// A lease to begin with.
#[derive(Clone, Debug)]
pub struct NewLease {
    /// The right to end this attempt.
    pub token: LeaseToken,
    /// When the lease ends by itself.
    pub until: Timestamp,
    /// Whose slot it is.
    pub session: SessionId,
    /// For the upload key.
    pub random: u128,
}

/// What a create came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Created {
    /// It waits for a slot.
    Pending,
    /// The offered slot has it.
    Leased {
        /// Where its picture goes.
        upload_key: ImageKey,
    },
    /// Nothing was created: the key has been used before.
    Repeated(Repeat),
    /// Nothing was created: as many asynchronous grabs as the team may have are open.
    QueueLimit {
        /// The limit in force.
        limit: u32,
    },
    /// Nothing was created: no credit is free.
    CreditsExhausted,
    /// Nothing was created: there is no such team, or it may not act.
    TeamInactive,
}

impl Store {
    /// Creates a live grab.
    ///
    /// # Errors
    /// Only of the database; a refusal is an outcome.
    pub async fn create(&self, new: NewGrab) -> Result<Created> {
        self.database.write(new).await
    }
}

impl Transaction for NewGrab {
    type Outcome = Created;

    async fn apply(&self, tx: &Tx) -> Result<Created> {
        let Some(team) = lock_team(tx, self.team).await? else { return Ok(Created::TeamInactive) };
        if let Some(record) = &self.idempotency
            && let Some(repeat) = repeat(tx, self.team, Environment::Live, record, self.now).await?
        {
            return Ok(Created::Repeated(repeat));
        }
        let limit = match self.class {
            Class::Sync => None,
            Class::Async => Some(team.async_queue_limit.map_or(Ok(self.async_limit_default), codes::read_count)?),
        };
        let queue = Queue::look(tx, self, limit).await?;
        if let (Some(limit), true) = (limit, queue.is_full) {
            return Ok(Created::QueueLimit { limit });
        }
        let Some(lot) = hold_credit(tx, self.team, self.now).await? else { return Ok(Created::CreditsExhausted) };
        self.insert_grab(tx).await?;
        if let Some(record) = &self.idempotency {
            remember(tx, self.team, Environment::Live, record, self.id, self.now).await?;
        }
        // Whoever waits was here first.
        let lease = self.lease.as_ref().filter(|_| !queue.is_waited_in);
        self.insert_job(tx, lot, queue.rank, lease).await
    }
}

impl NewGrab {
    async fn insert_grab(&self, tx: &Tx) -> Result<()> {
        let row = grab::ActiveModel {
            id: Set(self.id.0),
            team_id: Set(self.team.0),
            env: Set(codes::environment(Environment::Live)),
            class: Set(codes::class(self.class)),
            status: Set(OPEN),
            request: Set(grab::write_spec(&self.spec)?),
            attempts: Set(0),
            created_at: Set(self.now.as_ms()),
            ..Default::default()
        };
        grab::Entity::insert(row).exec_without_returning(tx).await?;
        Ok(())
    }

    async fn insert_job(&self, tx: &Tx, lot: LotId, rank: i64, lease: Option<&NewLease>) -> Result<Created> {
        let upload_key = lease.map(|lease| ImageKey::new(lease.random, self.spec.format.as_str()));
        let row = job::ActiveModel {
            grab_id: Set(self.id.0),
            team_id: Set(self.team.0),
            class: Set(codes::class(self.class)),
            vt: Set(rank),
            not_before: Set(self.now.as_ms()),
            deadline_at: Set(self.deadline_at.as_ms()),
            lot_id: Set(lot.0),
            attempt: Set(if lease.is_some() { 1 } else { 0 }),
            lease_token: Set(lease.map(|lease| lease.token.0)),
            lease_until: Set(lease.map(|lease| lease.until.as_ms())),
            session_id: Set(lease.map(|lease| lease.session.0)),
            upload_key: Set(upload_key.as_ref().map(|key| key.as_str().to_owned())),
        };
        job::Entity::insert(row).exec_without_returning(tx).await?;
        Ok(upload_key.map_or(Created::Pending, |upload_key| Created::Leased { upload_key }))
    }
}

/// Locks an active team against its other creates, so that what follows is exact and not a race that ends in a
/// constraint.
pub(crate) async fn lock_team(tx: &Tx, team: TeamId) -> Result<Option<team::Model>> {
    let active = team::Entity::find_by_id(team.0).filter(team::Column::Status.eq(ACTIVE));
    Ok(active.lock(LockType::NoKeyUpdate).one(tx).await?)
}

/// What a create must know of the queue, in one statement.
struct Queue {
    is_full: bool,
    is_waited_in: bool,
    /// One behind the team's last waiting job, but never before the head of the queue. A team that floods the queue
    /// lines up behind itself; a team that was away does not overtake those who wait.
    rank: i64,
}

impl Queue {
    async fn look(tx: &Tx, new: &NewGrab, limit: Option<u32>) -> Result<Self> {
        // Each is one look at an index, whose order it therefore has.
        let ranks = || job::Entity::find().select_only().column(job::Column::Vt);
        let of_team = || ranks().filter(job::Column::TeamId.eq(new.team.0));
        let of_class = job::Column::Class.eq(codes::class(new.class));
        let open = of_team().filter(of_class).order_by_asc(job::Column::Vt);
        let last = of_team().filter(job::is_waiting(new.class)).order_by_desc(job::Column::Vt);
        let head = ranks().filter(job::is_waiting(new.class)).order_by_asc(job::Column::Vt);
        let before = ranks().filter(job::is_leasable(new.class, new.now)).order_by_asc(job::Column::Vt);
        let mut look = Query::select();
        look.expr_as(first(last), "last").expr_as(first(head), "head").expr_as(first(before), "before");
        if let Some(behind) = limit.and_then(|limit| limit.checked_sub(1)) {
            look.expr_as(first(open.offset(u64::from(behind))), "full");
        }
        let row = tx.query_one(&look).await?.ok_or(Error::Inconsistent("a SELECT without FROM has one row"))?;
        let last: Option<i64> = row.try_get("", "last")?;
        let head: Option<i64> = row.try_get("", "head")?;
        let before: Option<i64> = row.try_get("", "before")?;
        let is_full = match limit {
            None => false,
            Some(0) => true,
            Some(_) => row.try_get::<Option<i64>>("", "full")?.is_some(),
        };
        let rank = Ord::max(last.map_or(0, |last| last + 1), head.unwrap_or(0));
        Ok(Self { is_full, is_waited_in: before.is_some(), rank })
    }
}

fn first(select: Select<job::Entity>) -> Expr {
    select.limit(1).into_query().into()
}

/// Promises one credit to a grab: of the subscription that ends first, then of the oldest prepaid lot.
async fn hold_credit(tx: &Tx, team: TeamId, now: Timestamp) -> Result<Option<LotId>> {
    let is_free = || Expr::col(lot::Column::Remaining).gt(Expr::col(lot::Column::Held));
    let usable = Condition::any().add(lot::Column::ExpiresAt.is_null()).add(lot::Column::ExpiresAt.gt(now.as_ms()));
    let next = lot::Entity::find()
        .select_only()
        .column(lot::Column::Id)
        .filter(lot::Column::TeamId.eq(team.0))
        .filter(is_free())
        .filter(usable)
        .order_by_asc(lot::Column::Kind)
        .order_by_asc(lot::Column::ExpiresAt)
        .order_by_asc(lot::Column::Id)
        .limit(1)
        .lock(LockType::Update)
        .into_query();
    let held = lot::Entity::update_many()
        .col_expr(lot::Column::Held, Expr::col(lot::Column::Held).add(1))
        .filter(Expr::col(lot::Column::Id).eq(Expr::from(next)))
        .filter(is_free())
        .exec_with_returning(tx)
        .await?;
    Ok(held.first().map(|lot| LotId(lot.id)))
}
