//! Changes and deletes monitors.

use grabd_domain::Timestamp;
use grabd_domain::monitor::{Monitor, MonitorChange, MonitorState};
use sea_orm::ActiveValue::{self, NotSet, Set, Unchanged};
use sea_orm::{ActiveModelTrait, EntityTrait};

use super::create::kept_runs;
use super::monitor_ref::{MonitorRef, read};
use crate::Result;
use crate::areas::Monitors;
use crate::audit::AuditEvent;
use crate::database::{Transaction, Tx};
use crate::entities::grab::write_spec;
use crate::entities::monitor;
use crate::team_lock::lock_team;

/// A change of a monitor.
#[derive(Clone, Debug)]
pub struct MonitorUpdate {
    /// The monitor.
    pub target: MonitorRef,
    /// What is changed.
    pub change: MonitorChange,
    /// The secret options of the new capture, encrypted. Only used with a new capture.
    pub secrets: Option<Vec<u8>>,
    /// How many runs all monitors of the team in the environment may keep together.
    pub kept_limit: u64,
    /// Current time.
    pub now: Timestamp,
}

/// Outcome of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeOutcome {
    /// The changed monitor.
    Changed(Box<Monitor>),
    /// The caller has no such monitor.
    NotFound,
    /// Nothing was changed: all monitors together would keep too many runs.
    TooManyRuns {
        /// How many this one may keep.
        left: u64,
    },
}

struct RemoveMonitor {
    target: MonitorRef,
}

impl Monitors<'_> {
    /// Changes a monitor and returns it. A new schedule starts now, and so does that of a monitor whose pause ends.
    ///
    /// # Errors
    /// Database errors only; a rejected change is an outcome.
    pub async fn change(self, update: MonitorUpdate) -> Result<ChangeOutcome> {
        let action = match update.change.is_paused {
            Some(true) => "monitor.pause",
            Some(false) => "monitor.resume",
            None => "monitor.change",
        };
        let event = AuditEvent::new(action, &update.target.monitor, Some(update.target.team));
        let changed = |outcome: &ChangeOutcome| matches!(outcome, ChangeOutcome::Changed(_));
        self.store.write_audited(update, event, changed).await
    }

    /// Deletes a monitor with its runs. Their grabs stay. `false` when the caller has no such monitor.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn remove(self, target: MonitorRef) -> Result<bool> {
        let event = AuditEvent::new("monitor.delete", &target.monitor, Some(target.team));
        self.store.write_audited(RemoveMonitor { target }, event, |removed: &bool| *removed).await
    }
}

impl Transaction for MonitorUpdate {
    type Outcome = ChangeOutcome;
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<ChangeOutcome> {
        if self.change.keep.is_some() {
            // The lock makes the sum exact under concurrent changes and creates.
            lock_team(tx, self.target.team).await?;
        }
        let Some(row) = self.target.lock(tx).await? else { return Ok(ChangeOutcome::NotFound) };
        if self.change.is_empty() {
            return Ok(ChangeOutcome::Changed(Box::new(read(tx, &row).await?)));
        }
        if let Some(keep) = self.change.keep {
            let MonitorRef { team, environment, monitor, .. } = self.target;
            let left = self.kept_limit.saturating_sub(kept_runs(tx, team, environment, Some(monitor)).await?);
            // Fewer than before is always possible.
            if u64::from(keep) > left && i64::from(keep) > i64::from(row.keep) {
                return Ok(ChangeOutcome::TooManyRuns { left });
            }
        }
        let MonitorChange { name, capture, schedule, compare, alert_after, notify, keep, quiet, is_paused: _ } =
            &self.change;
        let mut changed = monitor::ActiveModel {
            id: Unchanged(row.id),
            name: set(name.clone()),
            alert_after: set(alert_after.map(|count| i16::try_from(count).unwrap_or(i16::MAX))),
            notify: set(notify.map(monitor::notify)),
            keep: set(keep.map(|count| i32::try_from(count).unwrap_or(i32::MAX))),
            updated_at: Set(self.now.as_ms()),
            ..Default::default()
        };
        if let Some(capture) = capture {
            changed.capture = Set(write_spec(&capture.without_secrets())?);
            changed.secrets = Set(self.secrets.clone());
        }
        if let Some(schedule) = schedule {
            let (every, cron, time_zone) = monitor::schedule(schedule);
            (changed.every, changed.cron, changed.time_zone) = (Set(every), Set(cron), Set(time_zone));
        }
        if let Some(compare) = compare {
            let columns = monitor::compare(compare)?;
            (changed.threshold_ppm, changed.ignored) = (Set(columns.threshold_ppm), Set(columns.ignored));
            (changed.ignored_areas, changed.min_region_px) = (Set(columns.ignored_areas), Set(columns.min_region_px));
            (changed.compares_status, changed.text_patterns) =
                (Set(columns.compares_status), Set(columns.text_patterns));
            changed.compares_elements = Set(columns.compares_elements);
            changed.baseline = Set(columns.baseline);
        }
        if let Some(quiet) = quiet {
            let (from, to, zone) = monitor::quiet(quiet.as_ref());
            (changed.quiet_from, changed.quiet_to, changed.quiet_zone) = (Set(from), Set(to), Set(zone));
            // Alerts that wait for the end of the former hours are sent now, or at the end of the new ones.
            if row.held_until.is_some() {
                changed.held_until = Set(Some(self.now.as_ms()));
            }
        }
        self.set_next_run(&row, &mut changed)?;
        let row = changed.update(tx).await?;
        Ok(ChangeOutcome::Changed(Box::new(read(tx, &row).await?)))
    }
}

impl MonitorUpdate {
    /// Sets the state and the due time, if the change concerns them.
    fn set_next_run(&self, row: &monitor::Model, changed: &mut monitor::ActiveModel) -> Result<()> {
        let was_paused = monitor::read_state(row.state)? == MonitorState::Paused;
        let is_paused = self.change.is_paused.unwrap_or(was_paused);
        if is_paused {
            changed.state = Set(monitor::state(MonitorState::Paused));
            changed.next_run_at = Set(None);
        } else if was_paused || self.change.schedule.is_some() {
            let schedule = match &self.change.schedule {
                Some(schedule) => schedule.clone(),
                None => monitor::read_schedule(row)?,
            };
            if was_paused {
                changed.state = Set(monitor::state(MonitorState::Active));
            }
            let phase = monitor::read_phase(row)?;
            changed.next_run_at = Set(schedule.first_after(self.now, phase).map(Timestamp::as_ms));
        }
        Ok(())
    }
}

impl Transaction for RemoveMonitor {
    type Outcome = bool;
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<bool> {
        let Some(row) = self.target.lock(tx).await? else { return Ok(false) };
        // Its runs are deleted by cascade.
        monitor::Entity::delete_by_id(row.id).exec(tx).await?;
        Ok(true)
    }
}

fn set<T: Into<sea_orm::Value>>(value: Option<T>) -> ActiveValue<T> {
    value.map_or(NotSet, Set)
}
