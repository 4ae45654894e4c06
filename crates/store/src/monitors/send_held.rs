//! Sends the alerts of quiet hours when they have ended.

use grabd_domain::Timestamp;
use grabd_domain::ids::MonitorId;
use grabd_domain::monitor::RunOutcome;
use grabd_domain::webhooks::Event;
use sea_orm::ActiveValue::{Set, Unchanged};
use sea_orm::sea_query::{LockBehavior, LockType};
use sea_orm::{ActiveModelTrait, ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

use super::alerts::{self, AlertText, Sent};
use super::finish::FinishedRun;
use super::held::Held;
use super::keep::delete_old_runs;
use super::monitor_ref::read;
use super::queries::HELD;
use crate::Result;
use crate::areas::Monitors;
use crate::codes::read_count;
use crate::database::{Transaction, Tx};
use crate::entities::{monitor, monitor_run};
use crate::padded::padded;

struct SendHeld {
    monitor: MonitorId,
    now: Timestamp,
    text: AlertText,
}

impl Monitors<'_> {
    /// Up to `limit` monitors with alerts whose quiet hours have ended, longest ago first.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn held_alerts(self, now: Timestamp, limit: u32) -> Result<Vec<MonitorId>> {
        let held: Vec<Uuid> = monitor::Entity::find()
            .select_only()
            .column(monitor::Column::Id)
            .filter(monitor::Column::HeldUntil.lte(now.as_ms()))
            .filter(monitor::Column::Id.is_not_in(padded(self.store.set_aside.keys::<Uuid>(HELD, now))))
            .order_by_asc(monitor::Column::HeldUntil)
            .limit(u64::from(limit))
            .into_tuple()
            .all(self.store.database.reader())
            .await?;
        Ok(held.into_iter().map(MonitorId).collect())
    }

    /// Sends the alerts of a monitor whose quiet hours have ended: at most one about the last change, and one about the last
    /// failure or its end. `None` if there are none any more, or if other quiet hours have begun. A monitor that cannot be
    /// processed is set aside.
    ///
    /// # Errors
    /// Errors of the database as a whole.
    pub async fn send_held(self, monitor: MonitorId, now: Timestamp, text: AlertText) -> Result<Option<FinishedRun>> {
        let sent = self.store.database.write(SendHeld { monitor, now, text }).await;
        Ok(self.store.set_aside.unless_row_fails(HELD, &monitor.0, now, sent)?.flatten())
    }
}

impl Transaction for SendHeld {
    type Outcome = Option<FinishedRun>;
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<Option<FinishedRun>> {
        let row = monitor::Entity::find_by_id(self.monitor.0)
            .filter(monitor::Column::HeldUntil.lte(self.now.as_ms()))
            .lock_with_behavior(LockType::Update, LockBehavior::SkipLocked)
            .one(tx)
            .await?;
        let Some(row) = row else { return Ok(None) };
        let quiet = monitor::read_quiet(&row)?;
        let later = quiet.and_then(|quiet| quiet.end_after(self.now));
        if let Some(later) = later {
            let held_until = Set(Some(later.as_ms()));
            let changed = monitor::ActiveModel { id: Unchanged(row.id), held_until, ..Default::default() };
            changed.update(tx).await?;
            return Ok(None);
        }
        let sent = monitor::ActiveModel {
            id: Unchanged(row.id),
            held_until: Set(None),
            held_change_id: Set(None),
            held_failure_id: Set(None),
            ..Default::default()
        };
        let held = Held::of(&row);
        let monitor = read(tx, &sent.update(tx).await?).await?;
        let mut events = Vec::new();
        for (run, is_change) in [(held.change, true), (held.failure, false)] {
            let Some(run) = run else { continue };
            let Some(found) = monitor_run::Entity::find_by_id(run).one(tx).await? else { continue };
            let run = monitor_run::read(&found)?;
            let event = match (is_change, run.outcome) {
                (true, _) => Event::MonitorChanged,
                (false, RunOutcome::Failed) => Event::MonitorFailed,
                (false, _) => Event::MonitorRecovered,
            };
            events.push((event, run));
        }
        events.sort_by_key(|(_, run)| run.due_at);
        let last = events.last().map(|(_, run)| run.clone());
        let Sent { alerts, team_name, recipients } = alerts::send(tx, &monitor, events, self.text, self.now).await?;
        delete_old_runs(tx, row.id, read_count(row.keep)?, Held::default()).await?;
        Ok(last.map(|run| FinishedRun { monitor, run, alerts, has_run_out: false, team_name, recipients }))
    }
}
