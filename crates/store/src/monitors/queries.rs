//! Monitors and their runs, for callers, and those that are due.

use std::collections::HashMap;

use grabd_domain::Timestamp;
use grabd_domain::credentials::Environment;
use grabd_domain::ids::{GrantId, MonitorId, RunId, TeamId};
use grabd_domain::monitor::{Monitor, Run};
use sea_orm::{ColumnTrait, Condition, EntityTrait, JoinType, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

use super::monitor_ref::{MonitorRef, read};
use crate::Result;
use crate::areas::Monitors;
use crate::codes::{DONE, FAILED};
use crate::entities::monitor::{self, scoped};
use crate::entities::{grab, monitor_run};
use crate::padded::padded;

/// Kinds of work, whose rows are set aside if they cannot be processed.
pub(super) const DUE: &str = "monitors";
pub(super) const RUNS: &str = "monitor_runs";
pub(super) const HELD: &str = "monitor_alerts";

/// A page of monitors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MonitorPage {
    /// Newest first.
    pub monitors: Vec<Monitor>,
    /// Whether there are older ones.
    pub has_more: bool,
}

/// A page of runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunPage {
    /// Newest first.
    pub runs: Vec<Run>,
    /// Whether there are older ones.
    pub has_more: bool,
}

impl Monitors<'_> {
    /// Finds a monitor of a caller.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn find(self, target: MonitorRef) -> Result<Option<Monitor>> {
        // The end of a run changes both the monitor and the run.
        let tx = self.store.database.snapshot().await?;
        match target.query().one(&tx).await? {
            Some(row) => Ok(Some(read(&tx, &row).await?)),
            None => Ok(None),
        }
    }

    /// A page of the monitors of a team, or of those that an app has created with its grant, older than one of them.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn list(
        self,
        team: TeamId,
        environment: Environment,
        grant: Option<GrantId>,
        after: Option<MonitorId>,
        limit: u32,
    ) -> Result<MonitorPage> {
        // The end of a run changes both its monitor and the run.
        let tx = self.store.database.snapshot().await?;
        let mut query = scoped(team, environment, grant);
        if let Some(after) = after {
            query = query.filter(monitor::Column::Id.lt(after.0));
        }
        // One extra row tells whether there are more.
        let rows = query.order_by_desc(monitor::Column::Id).limit(u64::from(limit) + 1).all(&tx).await?;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let has_more = rows.len() > limit;
        let last: Vec<Uuid> = rows.iter().take(limit).filter_map(|row| row.last_run_id).collect();
        let runs = match last.is_empty() {
            true => Vec::new(),
            false => monitor_run::Entity::find().filter(monitor_run::Column::Id.is_in(padded(last))).all(&tx).await?,
        };
        let runs: HashMap<Uuid, monitor_run::Model> = runs.into_iter().map(|run| (run.id, run)).collect();
        let monitors = rows.iter().take(limit).map(|row| {
            let run = row.last_run_id.and_then(|run| runs.get(&run));
            monitor::read(row, run.map(monitor_run::read).transpose()?)
        });
        Ok(MonitorPage { monitors: monitors.collect::<Result<_>>()?, has_more })
    }

    /// The number of monitors of a team.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn count(self, team: TeamId, environment: Environment) -> Result<u64> {
        Ok(monitor::of_team(team, environment).count(self.store.database.reader()).await?)
    }

    /// A page of the runs of a monitor. `None` when `after` is not one of them. The caller must have checked access to the
    /// monitor.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn list_runs(self, monitor: MonitorId, after: Option<RunId>, limit: u32) -> Result<Option<RunPage>> {
        let db = self.store.database.reader();
        let of_monitor = || monitor_run::Entity::find().filter(monitor_run::Column::MonitorId.eq(monitor.0));
        let mut query = of_monitor();
        if let Some(after) = after {
            let found = of_monitor().filter(monitor_run::Column::Id.eq(after.0)).one(db).await?;
            let Some(found) = found else { return Ok(None) };
            query = query.filter(monitor_run::Column::DueAt.lt(found.due_at));
        }
        let rows = query.order_by_desc(monitor_run::Column::DueAt).limit(u64::from(limit) + 1).all(db).await?;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let has_more = rows.len() > limit;
        let runs = rows.iter().take(limit).map(monitor_run::read).collect::<Result<_>>()?;
        Ok(Some(RunPage { runs, has_more }))
    }

    /// Up to `limit` monitors that are due, longest overdue first.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn due(self, now: Timestamp, limit: u32) -> Result<Vec<MonitorId>> {
        let due: Vec<Uuid> = monitor::Entity::find()
            .select_only()
            .column(monitor::Column::Id)
            .filter(monitor::Column::NextRunAt.lte(now.as_ms()))
            .filter(monitor::Column::Id.is_not_in(padded(self.store.set_aside.keys::<Uuid>(DUE, now))))
            .order_by_asc(monitor::Column::NextRunAt)
            .limit(u64::from(limit))
            .into_tuple()
            .all(self.store.database.reader())
            .await?;
        Ok(due.into_iter().map(MonitorId).collect())
    }

    /// Up to `limit` open runs without a grab whose creation is to be tried again.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn unstarted_runs(self, now: Timestamp, limit: u32) -> Result<Vec<RunId>> {
        let open: Vec<Uuid> = monitor_run::Entity::find()
            .select_only()
            .column(monitor_run::Column::Id)
            .filter(monitor_run::Column::CheckAt.lte(now.as_ms()))
            .filter(monitor_run::Column::GrabId.is_null())
            .filter(monitor_run::Column::Id.is_not_in(padded(self.store.set_aside.keys::<Uuid>(RUNS, now))))
            .order_by_asc(monitor_run::Column::CheckAt)
            .limit(u64::from(limit))
            .into_tuple()
            .all(self.store.database.reader())
            .await?;
        Ok(open.into_iter().map(RunId).collect())
    }

    /// Up to `limit` open runs whose grab has ended, or was deleted by a retention.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn ended_runs(self, now: Timestamp, limit: u32) -> Result<Vec<RunId>> {
        let has_ended =
            Condition::any().add(grab::Column::Status.is_in([DONE, FAILED])).add(grab::Column::Id.is_null());
        let ended: Vec<Uuid> = monitor_run::Entity::find()
            .select_only()
            .column(monitor_run::Column::Id)
            .join(JoinType::LeftJoin, monitor_run::to_grab())
            .filter(monitor_run::Column::CheckAt.is_not_null())
            .filter(monitor_run::Column::GrabId.is_not_null())
            .filter(has_ended)
            .filter(monitor_run::Column::Id.is_not_in(padded(self.store.set_aside.keys::<Uuid>(RUNS, now))))
            .order_by_asc(monitor_run::Column::CheckAt)
            .limit(u64::from(limit))
            .into_tuple()
            .all(self.store.database.reader())
            .await?;
        Ok(ended.into_iter().map(RunId).collect())
    }

    /// The due time of the monitor that is due longest. `None` if none is.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn oldest_due(self, now: Timestamp) -> Result<Option<Timestamp>> {
        let oldest: Option<i64> = monitor::Entity::find()
            .select_only()
            .column(monitor::Column::NextRunAt)
            .filter(monitor::Column::NextRunAt.lte(now.as_ms()))
            .order_by_asc(monitor::Column::NextRunAt)
            .limit(1)
            .into_tuple()
            .one(self.store.database.reader())
            .await?;
        Ok(oldest.map(Timestamp::from_ms))
    }
}
