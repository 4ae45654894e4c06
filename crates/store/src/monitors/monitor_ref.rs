//! A monitor of a caller, and how its row is read.

use grabd_domain::credentials::Environment;
use grabd_domain::ids::{GrantId, MonitorId, TeamId};
use grabd_domain::monitor::Monitor;
use sea_orm::sea_query::LockType;
use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter, QuerySelect, Select};

use crate::Result;
use crate::database::Tx;
use crate::entities::monitor::{self, scoped};
use crate::entities::monitor_run;

/// A monitor of a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MonitorRef {
    /// The caller's team.
    pub team: TeamId,
    /// The caller's environment.
    pub environment: Environment,
    /// The grant of a caller that is an app, which sees only what it has created with it.
    pub grant: Option<GrantId>,
    /// The monitor.
    pub monitor: MonitorId,
}

impl MonitorRef {
    /// Selects the monitor, if the caller sees it.
    pub(super) fn query(&self) -> Select<monitor::Entity> {
        let &Self { team, environment, grant, monitor } = self;
        scoped(team, environment, grant).filter(monitor::Column::Id.eq(monitor.0))
    }

    /// Reads and locks the monitor.
    pub(super) async fn lock(&self, tx: &Tx) -> Result<Option<monitor::Model>> {
        Ok(self.query().lock(LockType::Update).one(tx).await?)
    }
}

/// Converts a row, with its latest run.
pub(super) async fn read<C: ConnectionTrait>(db: &C, row: &monitor::Model) -> Result<Monitor> {
    let run = match row.last_run_id {
        Some(run) => monitor_run::Entity::find_by_id(run).one(db).await?,
        None => None,
    };
    monitor::read(row, run.as_ref().map(monitor_run::read).transpose()?)
}
