//! Creates a live grab and holds one credit for it. If a slot is free, the grab is created leased, which saves a
//! commit.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Duration;

use grabd_domain::Timestamp;
use grabd_domain::admission::{Payer, QueueAhead, WaitLimit};
use grabd_domain::capture::CaptureSpec;
use grabd_domain::credentials::{Environment, Principal};
use grabd_domain::grabs::{Class, ImageKey};
use grabd_domain::idempotency::Fingerprint;
use grabd_domain::ids::{GrabId, LeaseToken, LotId, SessionId, TeamId};
use grabd_domain::limits::MAX_ATTEMPTS;
use grabd_domain::storage::StorageCeiling;
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{CaseStatement, Expr, ExprTrait, LockBehavior, LockType, Query, SelectStatement};
use sea_orm::{
    ColumnTrait, ConnectionTrait, EntityTrait, PaginatorTrait, QueryFilter, QueryOrder, QueryResult, QuerySelect,
    QueryTrait, Select,
};
use uuid::Uuid;

use crate::areas::Grabs;
use crate::codes::{self, ACTIVE, OPEN, size};
use crate::credits::held::{hold_credits, lock_lots_of};
use crate::database::{BatchedTransaction, Transaction, Tx};
use crate::entities::grab::CreatorIds;
use crate::entities::{grab, job, job_secrets, lot, team};
use crate::grabs::idempotency::{NewRecord, Repeat, check_key, store_key};
use crate::grabs::release::BACK_OFF;
use crate::grabs::stored_bytes::{is_reached, length, lock_stored_bytes_of};
use crate::padded::padded;
use crate::team_lock::lock_team;
use crate::{Error, Result};

/// A live grab to create.
#[derive(Clone, Debug)]
pub struct NewGrab {
    /// Its id.
    pub id: GrabId,
    /// The owning team, whose credit is held.
    pub team: TeamId,
    /// The payer of the team, whose turn it takes in the queue.
    pub payer: Payer,
    /// Who creates it, if that is recorded.
    pub creator: Option<Principal>,
    /// Synchronous or asynchronous.
    pub class: Class,
    /// What to capture.
    pub spec: CaptureSpec,
    /// Its secret options, encrypted. They are deleted when the grab ends.
    pub secrets: Option<Vec<u8>>,
    /// Current time.
    pub now: Timestamp,
    /// When the grab fails unless it has ended.
    pub deadline_at: Timestamp,
    /// The team's limit of open asynchronous grabs.
    pub async_limit: u32,
    /// Lease of a free slot, used unless other grabs are waiting.
    pub lease: Option<NewLease>,
    /// The limit of the expected wait. It does not apply to a grab that gets the slot of `lease`.
    pub wait: Option<WaitLimit>,
    /// The caller's idempotency key.
    pub idempotency: Option<NewRecord>,
    /// Fingerprint of the options that determine the image. None: the grab never answers a later request.
    pub fingerprint: Option<Fingerprint>,
    /// With which stored bytes the team may create no more. `None`: any number.
    pub ceiling: Option<StorageCeiling>,
}

/// An initial lease.
#[derive(Clone, Debug)]
pub struct NewLease {
    /// Token of the lease.
    pub token: LeaseToken,
    /// Expiry of the lease.
    pub until: Timestamp,
    /// Session of the renderer.
    pub session: SessionId,
    /// Random bits for the upload key.
    pub random: u128,
}

/// Outcome of a create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Created {
    /// The grab waits for a slot.
    Pending,
    /// The grab was leased to the offered slot.
    Leased {
        /// Key to store the image under.
        upload_key: ImageKey,
    },
    /// Nothing was created: the idempotency key was used before.
    Repeated(Repeat),
    /// Nothing was created: the team has reached its limit of open asynchronous grabs.
    QueueLimit {
        /// The limit.
        limit: u32,
    },
    /// Nothing was created: the expected wait is longer than the limit.
    WaitTooLong {
        /// The expected wait.
        expected: Duration,
    },
    /// Nothing was created: the team has reached its ceiling of stored bytes.
    StorageFull,
    /// Nothing was created: no credit is available.
    CreditsExhausted,
    /// Nothing was created: the team does not exist or is inactive.
    TeamInactive,
}

impl Grabs<'_> {
    /// Creates a live grab.
    ///
    /// # Errors
    /// Database errors only; a rejected change is an outcome.
    pub async fn create(self, new: NewGrab) -> Result<Created> {
        self.store.database.write_batched(new).await
    }
}

impl Transaction for NewGrab {
    type Outcome = Created;
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<Created> {
        if lock_team(tx, self.team).await?.is_none() {
            return Ok(Created::TeamInactive);
        }
        let created = create_all(tx, &[self]).await?;
        created.into_iter().next().ok_or(Error::Inconsistent("create without an outcome"))
    }
}

impl BatchedTransaction for NewGrab {
    fn key(&self) -> Uuid {
        self.team.0
    }

    async fn apply_batch(changes: &[&Self], tx: &Tx) -> Result<Vec<Option<Created>>> {
        let locked = lock_free_teams(tx, changes.iter().map(|new| new.team)).await?;
        let mut waiting: Vec<_> = changes.iter().copied().filter(|new| locked.contains(&new.team)).collect();
        if waiting.len() > locked.len() {
            lock_lots_of(tx, &locked).await?;
        }
        let mut created = HashMap::new();
        while !waiting.is_empty() {
            let next = take_of_different_teams(&mut waiting);
            created.extend(next.iter().map(|new| new.id).zip(create_all(tx, &next).await?));
        }
        Ok(changes.iter().map(|new| created.remove(&new.id)).collect())
    }
}

/// Removes the first grab of each team from the list, in the order of the teams' ids. The number is a power of two, as are those
/// of batches.
fn take_of_different_teams<'a>(waiting: &mut Vec<&'a NewGrab>) -> Vec<&'a NewGrab> {
    let mut teams = HashSet::new();
    let different = waiting.iter().filter(|new| teams.insert(new.team)).count();
    let number = different.checked_ilog2().map_or(0, |exponent| 1 << exponent);
    let mut taken = HashSet::new();
    let mut next: Vec<_> = waiting.extract_if(.., |new| taken.len() < number && taken.insert(new.team)).collect();
    next.sort_unstable_by_key(|new| new.team);
    next
}

/// A grab that is created if its team has a credit.
struct Admitted<'a> {
    new: &'a NewGrab,
    queue: Queue,
    /// The stored form of the options.
    request: String,
}

/// Requests with more bytes count before the grab ends. Others are so short that the limit of open grabs suffices.
const LONG_REQUEST_BYTES: i64 = 16_384;

/// Creates grabs of different teams, which are locked, in the order of the teams' ids. The outcomes have the same order.
async fn create_all(tx: &Tx, new_grabs: &[&NewGrab]) -> Result<Vec<Created>> {
    let mut outcomes = HashMap::new();
    let mut admitted = Vec::new();
    for (&new, queue) in new_grabs.iter().zip(Queue::read(tx, new_grabs).await?) {
        match new.rejection(tx, &queue).await? {
            Some(rejection) => drop(outcomes.insert(new.team, rejection)),
            None => admitted.push(Admitted { new, queue, request: grab::write_spec(&new.spec)? }),
        }
    }
    let long = admitted.iter().filter(|admitted| admitted.stored_bytes().is_some());
    lock_stored_bytes_of(tx, long.map(|admitted| admitted.new.team)).await?;
    let teams: Vec<_> = admitted.iter().map(|Admitted { new, .. }| (new.team, new.now)).collect();
    let lots = hold_credits(tx, &teams).await?;
    admitted.retain(|Admitted { new, .. }| lots.contains_key(&new.team));
    let (mut grabs, mut jobs) = (Vec::new(), Vec::new());
    for admitted in &admitted {
        let Admitted { new, queue, request: _ } = admitted;
        let lease = new.lease_if_free(queue);
        let upload_key = lease.map(|lease| ImageKey::new(lease.random, new.spec.format.as_str()));
        grabs.push(admitted.grab_row());
        jobs.push(new.job_row(lots[&new.team], queue.rank, lease, upload_key.as_ref()));
        let created = upload_key.map_or(Created::Pending, |upload_key| Created::Leased { upload_key });
        outcomes.insert(new.team, created);
    }
    if !grabs.is_empty() {
        grab::Entity::insert_many(grabs).exec_without_returning(tx).await?;
        job::Entity::insert_many(jobs).exec_without_returning(tx).await?;
    }
    for Admitted { new, .. } in admitted {
        new.add_details(tx).await?;
    }
    Ok(new_grabs.iter().map(|new| outcomes.remove(&new.team).unwrap_or(Created::CreditsExhausted)).collect())
}

impl Admitted<'_> {
    /// What the open grab counts, with its secret options. `None`: nothing.
    fn stored_bytes(&self) -> Option<i64> {
        let secrets = self.new.secrets.as_ref().map_or(0, Vec::len);
        let bytes = length(&self.request) + size(u64::try_from(secrets).unwrap_or(u64::MAX));
        Some(bytes).filter(|bytes| *bytes > LONG_REQUEST_BYTES)
    }

    fn grab_row(&self) -> grab::ActiveModel {
        let new = self.new;
        let creator = CreatorIds::of(new.creator);
        grab::ActiveModel {
            id: Set(new.id.0),
            team_id: Set(new.team.0),
            env: Set(codes::environment(Environment::Live)),
            class: Set(codes::class(new.class)),
            status: Set(OPEN),
            request: Set(self.request.clone()),
            attempts: Set(0),
            created_at: Set(new.now.as_ms()),
            fingerprint: Set(new.fingerprint.map(|fingerprint| fingerprint.to_vec())),
            key_id: Set(creator.key),
            user_id: Set(creator.user),
            grant_id: Set(creator.grant),
            stored_bytes: Set(self.stored_bytes()),
            ..Default::default()
        }
    }
}

impl NewGrab {
    /// Why the grab is not created, apart from a lack of credits.
    async fn rejection(&self, tx: &Tx, queue: &Queue) -> Result<Option<Created>> {
        if let Some(record) = &self.idempotency
            && let Some(repeat) = check_key(tx, self.team, Environment::Live, record, self.now).await?
        {
            return Ok(Some(Created::Repeated(repeat)));
        }
        if queue.is_storage_full {
            return Ok(Some(Created::StorageFull));
        }
        if let (Some(limit), true) = (self.queue_limit(), queue.is_full) {
            return Ok(Some(Created::QueueLimit { limit }));
        }
        if let (Some(wait), None) = (&self.wait, self.lease_if_free(queue)) {
            let ahead = self.count_ahead(tx, queue.rank).await?;
            if let Some(expected) = wait.exceeded(ahead) {
                return Ok(Some(Created::WaitTooLong { expected }));
            }
        }
        Ok(None)
    }

    const fn queue_limit(&self) -> Option<u32> {
        match self.class {
            Class::Sync => None,
            Class::Async => Some(self.async_limit),
        }
    }

    /// The offered lease. Waiting grabs go first.
    fn lease_if_free(&self, queue: &Queue) -> Option<&NewLease> {
        self.lease.as_ref().filter(|_| !queue.has_waiting)
    }

    /// Counts the grabs that are leased before one with this rank.
    async fn count_ahead(&self, tx: &Tx, rank: i64) -> Result<QueueAhead> {
        let ahead =
            || job::Entity::find().filter(job::is_leasable(self.class, self.now)).filter(job::Column::Vt.lte(rank));
        let all = ahead().count(tx).await?;
        let paid = if self.payer.has_paid { ahead().filter(job::Column::Paid.eq(true)).count(tx).await? } else { 0 };
        Ok(QueueAhead { all, paid })
    }

    fn job_row(
        &self,
        lot: LotId,
        rank: i64,
        lease: Option<&NewLease>,
        upload_key: Option<&ImageKey>,
    ) -> job::ActiveModel {
        job::ActiveModel {
            grab_id: Set(self.id.0),
            team_id: Set(self.team.0),
            account_id: Set(Some(self.payer.id.0)),
            paid: Set(self.payer.has_paid),
            class: Set(codes::class(self.class)),
            vt: Set(rank),
            not_before: Set(self.now.as_ms()),
            deadline_at: Set(self.deadline_at.as_ms()),
            lot_id: Set(lot.0),
            attempt: Set(if lease.is_some() { 1 } else { 0 }),
            lease_token: Set(lease.map(|lease| lease.token.0)),
            lease_until: Set(lease.map(|lease| lease.until.as_ms())),
            session_id: Set(lease.map(|lease| lease.session.0)),
            upload_key: Set(upload_key.map(|key| key.as_str().to_owned())),
        }
    }

    /// Stores what few grabs have: an idempotency key and secret options.
    async fn add_details(&self, tx: &Tx) -> Result<()> {
        if let Some(record) = &self.idempotency {
            store_key(tx, self.team, Environment::Live, record, self.id, false, self.now).await?;
        }
        if let Some(secrets) = &self.secrets {
            job_secrets::Entity::update_many()
                .col_expr(job_secrets::Column::Secrets, Expr::value(secrets.clone()))
                .filter(job_secrets::Column::GrabId.eq(self.id.0))
                .exec(tx)
                .await?;
        }
        Ok(())
    }
}

/// Locks those of the teams that are active and that nobody else has locked.
async fn lock_free_teams(tx: &Tx, teams: impl Iterator<Item = TeamId>) -> Result<BTreeSet<TeamId>> {
    let locked: Vec<Uuid> = team::Entity::find()
        .select_only()
        .column(team::Column::Id)
        .filter(team::Column::Id.is_in(padded(teams.map(|team| team.0))))
        .filter(team::Column::Status.eq(ACTIVE))
        .lock_with_behavior(LockType::NoKeyUpdate, LockBehavior::SkipLocked)
        .into_tuple()
        .all(tx)
        .await?;
    Ok(locked.into_iter().map(TeamId).collect())
}

/// State of the queue that a create depends on.
struct Queue {
    is_storage_full: bool,
    is_full: bool,
    has_waiting: bool,
    /// One after the payer's last waiting job, but never before the head of the queue. A payer that floods the
    /// queue, with one team or many, queues behind its own jobs, and a payer that was idle does not overtake waiting
    /// jobs.
    rank: i64,
}

impl Queue {
    /// Reads the state for each of the grabs, with one statement.
    async fn read(tx: &Tx, new_grabs: &[&NewGrab]) -> Result<Vec<Self>> {
        if new_grabs.is_empty() {
            return Ok(Vec::new());
        }
        let mut query = Query::select();
        for (number, new) in new_grabs.iter().enumerate() {
            Self::add_columns(&mut query, number, new);
        }
        let row = tx.query_one(&query).await?.ok_or(Error::Inconsistent("SELECT without FROM returned no row"))?;
        new_grabs.iter().enumerate().map(|(number, new)| Self::from_row(&row, number, new)).collect()
    }

    fn add_columns(query: &mut SelectStatement, number: usize, new: &NewGrab) {
        // Each subquery is one index lookup, so it sorts in the order of its index.
        let ranks = || job::Entity::find().select_only().column(job::Column::Vt);
        let of_team = || ranks().filter(job::Column::TeamId.eq(new.team.0));
        let of_class = job::Column::Class.eq(codes::class(new.class));
        let open = of_team().filter(of_class).order_by_asc(job::Column::Vt);
        let of_payer = || ranks().filter(job::Column::AccountId.eq(new.payer.id.0));
        let last = of_payer().filter(job::is_waiting(new.class)).order_by_desc(job::Column::Vt);
        // Jobs of a payer that must wait do not hold the head back. Those of a lost attempt do: they wait briefly.
        let soon = (new.now + BACK_OFF * MAX_ATTEMPTS).as_ms();
        let head = ranks()
            .filter(job::is_waiting(new.class))
            .filter(job::Column::NotBefore.lte(soon))
            .order_by_asc(job::Column::Vt);
        let before = ranks().filter(job::is_leasable(new.class, new.now)).order_by_asc(job::Column::Vt);
        query
            .expr_as(first(last), column("last", number))
            .expr_as(first(head), column("head", number))
            .expr_as(first(before), column("before", number));
        if let Some(ceiling) = new.ceiling {
            query.expr_as(Expr::from(is_reached(new.team, ceiling)), column("stored", number));
        }
        if let Some(others) = new.queue_limit().and_then(|limit| limit.checked_sub(1)) {
            // Counting takes longer the more there are. Each open grab holds a credit, so it is only done if enough are held.
            let held = lot::Entity::find()
                .select_only()
                .column_as(lot::Column::Held.sum(), "held")
                .filter(lot::Column::TeamId.eq(new.team.0));
            let is_possible = Expr::from(held.into_query()).gt(others);
            let counted = CaseStatement::new().case(is_possible, first(open.offset(u64::from(others))));
            query.expr_as(counted, column("full", number));
        }
    }

    fn from_row(row: &QueryResult, number: usize, new: &NewGrab) -> Result<Self> {
        let read = |name| row.try_get::<Option<i64>>("", &column(name, number));
        let (last, head, before) = (read("last")?, read("head")?, read("before")?);
        let is_full = match new.queue_limit() {
            None => false,
            Some(0) => true,
            Some(_) => read("full")?.is_some(),
        };
        let is_storage_full = match new.ceiling {
            None => false,
            Some(_) => row.try_get::<Option<i32>>("", &column("stored", number))?.is_some(),
        };
        let rank = Ord::max(last.map_or(0, |last| last + 1), head.unwrap_or(0));
        Ok(Self { is_storage_full, is_full, has_waiting: before.is_some(), rank })
    }
}

/// The name of the column with the result for one of the grabs.
fn column(name: &str, number: usize) -> String {
    format!("{name}_{number}")
}

fn first(select: Select<job::Entity>) -> Expr {
    select.limit(1).into_query().into()
}
