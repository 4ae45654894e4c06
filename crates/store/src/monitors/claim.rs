//! Claims due monitors: writes the run of the due time, and moves the due time on, in one transaction.

use grabd_domain::Timestamp;
use grabd_domain::ids::{GrabId, MonitorId, RunId};
use grabd_domain::monitor::{RunError, RunOutcome, Schedule};
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{Expr, LockBehavior, LockType};
use sea_orm::{ColumnTrait, EntityTrait, PaginatorTrait, QueryFilter, QuerySelect};
use uuid::Uuid;

use super::access::has_access;
use super::held::Held;
use super::keep::delete_old_runs;
use super::queries::DUE;
use super::start::{MISSED, RunTimes, StartRun, start_of};
use crate::Result;
use crate::areas::Monitors;
use crate::codes::{DONE, read_count};
use crate::database::{Transaction, Tx};
use crate::entities::{grab, monitor, monitor_run};

/// Outcome of claiming a due monitor: what happens at its due time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claimed {
    /// Its run is to be started.
    Run(Box<StartRun>),
    /// It is recorded as missed.
    Missed(RunId),
    /// It has a run already: the clock was set back.
    Repeated,
    /// It has none, because the team is suspended, or the app that created the monitor has no access at the moment.
    NoAccess,
}

struct ClaimDue {
    monitor: MonitorId,
    now: Timestamp,
    until: Timestamp,
}

impl Monitors<'_> {
    /// Claims a monitor that is still due: its run is to be started by the caller, until `until`. `None` if it is not due any
    /// more, or if another process claims it. A monitor that cannot be processed is set aside.
    ///
    /// A due time after which another one has passed is recorded as missed, and so is one at which the run before has not
    /// ended. The next due time is in the future in any case.
    ///
    /// # Errors
    /// Errors of the database as a whole.
    pub async fn claim(self, monitor: MonitorId, now: Timestamp, until: Timestamp) -> Result<Option<Claimed>> {
        let claimed = self.store.database.write(ClaimDue { monitor, now, until }).await;
        Ok(self.store.set_aside.unless_row_fails(DUE, &monitor.0, now, claimed)?.flatten())
    }
}

impl Transaction for ClaimDue {
    type Outcome = Option<Claimed>;
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<Option<Claimed>> {
        let row = monitor::Entity::find_by_id(self.monitor.0)
            .filter(monitor::Column::NextRunAt.lte(self.now.as_ms()))
            .lock_with_behavior(LockType::Update, LockBehavior::SkipLocked)
            .one(tx)
            .await?;
        let Some(row) = row else { return Ok(None) };
        let Some(due) = row.next_run_at.map(Timestamp::from_ms) else { return Ok(None) };
        let schedule = monitor::read_schedule(&row)?;
        let phase = monitor::read_phase(&row)?;
        // The first run of an interval is at once. Those after it have the delay of the monitor.
        let is_first = matches!(schedule, Schedule::Every(_)) && due.as_ms() == row.created_at;
        let from = if is_first { due + schedule.delay(phase) } else { due };
        let next = schedule.next_after(from, self.now, phase);
        if !has_access(tx, &row, self.now).await? {
            move_on(tx, row.id, next, None).await?;
            return Ok(Some(Claimed::NoAccess));
        }
        let missed = match schedule.next_after(from, due, phase) {
            Some(following) if following <= self.now => {
                Some("The service was not running at this time, or it was too busy.")
            }
            Some(_) | None => match has_open_run(tx, self.monitor).await? {
                true => Some("The run before had not ended at this time."),
                false => None,
            },
        };
        let compared_to = match missed {
            None => {
                let needs_files = monitor::read_compare(&row)?.needs_files();
                usable_baseline(tx, row.baseline_grab_id.map(GrabId), needs_files).await?
            }
            Some(_) => None,
        };
        let run = monitor_run::id_of(self.monitor, due);
        let is_new = self.insert(tx, run, due, compared_to, missed).await?;
        move_on(tx, row.id, next, is_new.then_some(run)).await?;
        if is_new && missed.is_some() {
            delete_old_runs(tx, row.id, read_count(row.keep)?, Held::of(&row)).await?;
        }
        Ok(Some(match (is_new, missed) {
            (false, _) => Claimed::Repeated,
            (true, Some(_)) => Claimed::Missed(run),
            (true, None) => {
                let times = RunTimes { due_at: due, claimed_at: self.now };
                Claimed::Run(Box::new(start_of(tx, run, times, compared_to, &row).await?))
            }
        }))
    }
}

impl ClaimDue {
    /// Inserts the run, unless the due time has one.
    async fn insert(
        &self,
        tx: &Tx,
        run: RunId,
        due: Timestamp,
        compared_to: Option<GrabId>,
        missed: Option<&str>,
    ) -> Result<bool> {
        let outcome = if missed.is_some() { RunOutcome::Missed } else { RunOutcome::Running };
        let error = missed.map(|message| RunError::new(MISSED, &message));
        let (code, message) = error.map(|error| (error.code, error.message)).unzip();
        let inserted = monitor_run::ActiveModel {
            id: Set(run.0),
            monitor_id: Set(self.monitor.0),
            due_at: Set(due.as_ms()),
            outcome: Set(monitor_run::outcome(outcome)),
            grab_id: Set(None),
            compared_to: Set(compared_to.map(|grab| grab.0)),
            difference_ppm: Set(None),
            changes: Set(0),
            text_changes: Set(None),
            element_changes: Set(None),
            alerted: Set(0),
            finished_at: Set(missed.map(|_| self.now.as_ms())),
            error_code: Set(code),
            error_message: Set(message),
            claimed_at: Set(self.now.as_ms()),
            check_at: Set(if missed.is_some() { None } else { Some(self.until.as_ms()) }),
        };
        // The monitor is locked, so that nothing else inserts it meanwhile.
        if monitor_run::Entity::find_by_id(run.0).count(tx).await? > 0 {
            return Ok(false);
        }
        monitor_run::Entity::insert(inserted).exec_without_returning(tx).await?;
        Ok(true)
    }
}

/// Sets the next due time, and the latest run if there is a new one.
async fn move_on(tx: &Tx, monitor: Uuid, next: Option<Timestamp>, run: Option<RunId>) -> Result<()> {
    let mut change = monitor::Entity::update_many()
        .col_expr(monitor::Column::NextRunAt, Expr::value(next.map(Timestamp::as_ms)))
        .filter(monitor::Column::Id.eq(monitor));
    if let Some(run) = run {
        change = change.col_expr(monitor::Column::LastRunId, Expr::value(run.0));
    }
    change.exec(tx).await?;
    Ok(())
}

async fn has_open_run(tx: &Tx, monitor: MonitorId) -> Result<bool> {
    let open = monitor_run::Entity::find()
        .filter(monitor_run::Column::MonitorId.eq(monitor.0))
        .filter(monitor_run::Column::Outcome.eq(monitor_run::outcome(RunOutcome::Running)));
    Ok(open.count(tx).await? > 0)
}

/// The grab of the baseline, if it can still be compared with: it exists, and its files do if images or texts are compared.
pub(super) async fn usable_baseline(tx: &Tx, baseline: Option<GrabId>, needs_files: bool) -> Result<Option<GrabId>> {
    let Some(baseline) = baseline else { return Ok(None) };
    let mut found = grab::Entity::find_by_id(baseline.0).filter(grab::Column::Status.eq(DONE));
    // The files of a grab are deleted with its image.
    if needs_files {
        found = found.filter(grab::Column::ImageKey.is_not_null());
    }
    Ok(found.one(tx).await?.map(|_| baseline))
}
