//! Starts runs: leases those whose start was interrupted, and notes their grabs.

use grabd_domain::Timestamp;
use grabd_domain::ids::{GrabId, MonitorId, RunId};
use grabd_domain::monitor::{Monitor, MonitorState, Run, RunError, RunOutcome};
use sea_orm::ActiveValue::{Set, Unchanged};
use sea_orm::sea_query::{Expr, LockType};
use sea_orm::{ActiveModelTrait, ColumnTrait, EntityTrait, QueryFilter, QuerySelect};
use uuid::Uuid;

use super::access::has_access;
use super::held::Held;
use super::keep::delete_old_runs;
use super::monitor_ref::read;
use super::queries::RUNS;
use crate::Result;
use crate::areas::Monitors;
use crate::codes::read_count;
use crate::database::{Transaction, Tx};
use crate::entities::{idem, monitor, monitor_run};

/// Code of the error of a missed run.
pub(super) const MISSED: &str = "missed";

/// A run to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartRun {
    /// The run.
    pub run: RunId,
    /// When it was due.
    pub due_at: Timestamp,
    /// When its start began.
    pub claimed_at: Timestamp,
    /// The grab of the baseline.
    pub compared_to: Option<GrabId>,
    /// The monitor, without the values of secret options.
    pub monitor: Monitor,
    /// The secret options, encrypted.
    pub secrets: Option<Vec<u8>>,
    /// Whether it may have been started before, so that it may have a grab that is not noted.
    pub is_repeated: bool,
}

/// When a run was due, and when its start began.
#[derive(Clone, Copy)]
pub(super) struct RunTimes {
    pub(super) due_at: Timestamp,
    pub(super) claimed_at: Timestamp,
}

/// Outcome of leasing a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leased {
    /// It is to be started.
    Run(Box<StartRun>),
    /// It is recorded as missed: the monitor was paused, or may not make captures at the moment.
    Missed(RunId),
}

struct LeaseRun {
    run: RunId,
    now: Timestamp,
    until: Timestamp,
}

struct AttachGrab {
    run: RunId,
    grab: GrabId,
    now: Timestamp,
}

struct DelayRun {
    run: RunId,
    until: Timestamp,
}

impl Monitors<'_> {
    /// Leases a run that has no grab, until `until`. `None` if another process has leased it, or if it has one now. If the monitor
    /// may make no captures any more, the run is missed. A run that cannot be processed is set aside.
    ///
    /// # Errors
    /// Errors of the database as a whole.
    pub async fn lease_run(self, run: RunId, now: Timestamp, until: Timestamp) -> Result<Option<Leased>> {
        let leased = self.store.database.write(LeaseRun { run, now, until }).await;
        Ok(self.store.set_aside.unless_row_fails(RUNS, &run.0, now, leased)?.flatten())
    }

    /// Notes the grab of a run. A monitor that had no credits is active again. `false` if the run has a grab or has ended.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn attach_grab(self, run: RunId, grab: GrabId, now: Timestamp) -> Result<bool> {
        self.store.database.write(AttachGrab { run, grab, now }).await
    }

    /// Lets the start of a run be tried again at a later time.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn delay_run(self, run: RunId, until: Timestamp) -> Result<()> {
        self.store.database.write(DelayRun { run, until }).await
    }
}

/// What is needed to start a run of a monitor for the first time.
pub(super) async fn start_of(
    tx: &Tx,
    run: RunId,
    RunTimes { due_at, claimed_at }: RunTimes,
    compared_to: Option<GrabId>,
    row: &monitor::Model,
) -> Result<StartRun> {
    let monitor = read(tx, row).await?;
    Ok(StartRun { run, due_at, claimed_at, compared_to, monitor, secrets: row.secrets.clone(), is_repeated: false })
}

/// Locks the monitor of a run, and then the run, if it is open.
pub(super) async fn lock_open_run(tx: &Tx, run: RunId) -> Result<Option<(monitor::Model, monitor_run::Model)>> {
    let monitor: Option<Uuid> = monitor_run::Entity::find_by_id(run.0)
        .select_only()
        .column(monitor_run::Column::MonitorId)
        .into_tuple()
        .one(tx)
        .await?;
    let Some(monitor) = monitor else { return Ok(None) };
    let monitor = monitor::Entity::find_by_id(monitor).lock(LockType::Update).one(tx).await?;
    let open = monitor_run::Entity::find_by_id(run.0)
        .filter(monitor_run::Column::Outcome.eq(monitor_run::outcome(RunOutcome::Running)))
        .lock(LockType::Update)
        .one(tx)
        .await?;
    Ok(monitor.zip(open))
}

impl Transaction for LeaseRun {
    type Outcome = Option<Leased>;
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<Option<Leased>> {
        let Some((monitor, run)) = lock_open_run(tx, self.run).await? else { return Ok(None) };
        if run.grab_id.is_some() || run.check_at.is_none_or(|at| at > self.now.as_ms()) {
            return Ok(None);
        }
        let is_paused = monitor::read_state(monitor.state)? == MonitorState::Paused;
        if is_paused || !has_access(tx, &monitor, self.now).await? {
            // The start that was interrupted may have created the grab.
            if let Some(grab) = created_grab(tx, &monitor, &run).await? {
                attach(tx, &monitor, &run, grab, self.now).await?;
                return Ok(None);
            }
            miss(tx, &monitor, &run, self.now).await?;
            return Ok(Some(Leased::Missed(self.run)));
        }
        monitor_run::Entity::update_many()
            .col_expr(monitor_run::Column::CheckAt, Expr::value(self.until.as_ms()))
            .filter(monitor_run::Column::Id.eq(run.id))
            .exec(tx)
            .await?;
        let times = RunTimes { due_at: Timestamp::from_ms(run.due_at), claimed_at: Timestamp::from_ms(run.claimed_at) };
        let start = start_of(tx, self.run, times, run.compared_to.map(GrabId), &monitor).await?;
        Ok(Some(Leased::Run(Box::new(StartRun { is_repeated: true, ..start }))))
    }
}

/// The grab that an earlier start of a run has created. Its idempotency key is kept for longer than starts are repeated.
async fn created_grab(tx: &Tx, monitor: &monitor::Model, run: &monitor_run::Model) -> Result<Option<Uuid>> {
    let key = Run::idempotency_key(MonitorId(monitor.id), Timestamp::from_ms(run.due_at));
    let known = idem::Entity::find_by_id((monitor.team_id, monitor.env, key)).one(tx).await?;
    Ok(known.map(|known| known.grab_id))
}

/// Ends a run whose monitor may make no captures any more.
async fn miss(tx: &Tx, monitor: &monitor::Model, run: &monitor_run::Model, now: Timestamp) -> Result<()> {
    let message = "The monitor was paused, or had no access, before the capture was created.";
    let RunError { code, message } = RunError::new(MISSED, &message);
    let ended = monitor_run::ActiveModel {
        id: Unchanged(run.id),
        outcome: Set(monitor_run::outcome(RunOutcome::Missed)),
        finished_at: Set(Some(now.as_ms())),
        error_code: Set(Some(code)),
        error_message: Set(Some(message)),
        check_at: Set(None),
        ..Default::default()
    };
    ended.update(tx).await?;
    delete_old_runs(tx, monitor.id, read_count(monitor.keep)?, Held::of(monitor)).await
}

impl Transaction for AttachGrab {
    type Outcome = bool;
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<bool> {
        let Some((monitor, run)) = lock_open_run(tx, self.run).await? else { return Ok(false) };
        if run.grab_id.is_some() {
            return Ok(false);
        }
        attach(tx, &monitor, &run, self.grab.0, self.now).await?;
        Ok(true)
    }
}

/// Notes the grab of a run.
async fn attach(tx: &Tx, monitor: &monitor::Model, run: &monitor_run::Model, grab: Uuid, now: Timestamp) -> Result<()> {
    monitor_run::Entity::update_many()
        .col_expr(monitor_run::Column::GrabId, Expr::value(grab))
        .col_expr(monitor_run::Column::CheckAt, Expr::value(now.as_ms()))
        .filter(monitor_run::Column::Id.eq(run.id))
        .exec(tx)
        .await?;
    if monitor::read_state(monitor.state)? == MonitorState::OutOfCredits {
        monitor::Entity::update_many()
            .col_expr(monitor::Column::State, Expr::value(monitor::state(MonitorState::Active)))
            .filter(monitor::Column::Id.eq(monitor.id))
            .exec(tx)
            .await?;
    }
    Ok(())
}

impl Transaction for DelayRun {
    type Outcome = ();
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<()> {
        monitor_run::Entity::update_many()
            .col_expr(monitor_run::Column::CheckAt, Expr::value(self.until.as_ms()))
            .filter(monitor_run::Column::Id.eq(self.run.0))
            .filter(monitor_run::Column::Outcome.eq(monitor_run::outcome(RunOutcome::Running)))
            .filter(monitor_run::Column::GrabId.is_null())
            .exec(tx)
            .await?;
        Ok(())
    }
}
