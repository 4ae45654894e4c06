//! Accepts a capture as the baseline.

use grabd_domain::Timestamp;
use grabd_domain::ids::GrabId;
use grabd_domain::monitor::{Monitor, RunOutcome};
use sea_orm::ActiveValue::{Set, Unchanged};
use sea_orm::{ActiveModelTrait, ColumnTrait, EntityTrait, QueryFilter, QueryOrder};
use uuid::Uuid;

use super::monitor_ref::{MonitorRef, read};
use crate::Result;
use crate::areas::Monitors;
use crate::audit::AuditEvent;
use crate::codes::DONE;
use crate::database::{Transaction, Tx};
use crate::entities::{grab, monitor, monitor_run};

/// Outcome of accepting a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AcceptOutcome {
    /// It is the baseline of this monitor.
    Accepted(Box<Monitor>),
    /// The caller has no such monitor.
    NotFound,
    /// The monitor has no run with this grab, or none that is done, or its image was deleted.
    NoCapture,
}

struct Accept {
    target: MonitorRef,
    grab: Option<GrabId>,
    now: Timestamp,
}

impl Monitors<'_> {
    /// Makes the capture of a run the baseline: that of this grab, or of the latest done run.
    ///
    /// # Errors
    /// Database errors only; a rejected change is an outcome.
    pub async fn accept(self, target: MonitorRef, grab: Option<GrabId>, now: Timestamp) -> Result<AcceptOutcome> {
        let event = AuditEvent::new("monitor.accept", &target.monitor, Some(target.team));
        let accepted = |outcome: &AcceptOutcome| matches!(outcome, AcceptOutcome::Accepted(_));
        self.store.write_audited(Accept { target, grab, now }, event, accepted).await
    }
}

impl Transaction for Accept {
    type Outcome = AcceptOutcome;
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<AcceptOutcome> {
        let Some(row) = self.target.lock(tx).await? else { return Ok(AcceptOutcome::NotFound) };
        let Some(capture) = self.capture(tx, row.id).await? else { return Ok(AcceptOutcome::NoCapture) };
        let changed = monitor::ActiveModel {
            id: Unchanged(row.id),
            baseline_grab_id: Set(Some(capture)),
            differing: Set(0),
            change_reported: Set(0),
            updated_at: Set(self.now.as_ms()),
            ..Default::default()
        };
        let row = changed.update(tx).await?;
        Ok(AcceptOutcome::Accepted(Box::new(read(tx, &row).await?)))
    }
}

impl Accept {
    /// The grab to accept, if it has an image.
    async fn capture(&self, tx: &Tx, monitor: Uuid) -> Result<Option<Uuid>> {
        let done = [RunOutcome::First, RunOutcome::Same, RunOutcome::Changed].map(monitor_run::outcome);
        let mut runs = monitor_run::Entity::find()
            .filter(monitor_run::Column::MonitorId.eq(monitor))
            .filter(monitor_run::Column::Outcome.is_in(done));
        if let Some(grab) = self.grab {
            runs = runs.filter(monitor_run::Column::GrabId.eq(grab.0));
        }
        let run = runs.order_by_desc(monitor_run::Column::DueAt).one(tx).await?;
        let Some(capture) = run.and_then(|run| run.grab_id) else { return Ok(None) };
        let with_image = grab::Entity::find_by_id(capture)
            .filter(grab::Column::Status.eq(DONE))
            .filter(grab::Column::ImageKey.is_not_null());
        Ok(with_image.one(tx).await?.map(|found| found.id))
    }
}
