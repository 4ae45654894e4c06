//! Public addresses of feeds: only hashes of their secret parts are stored.

use grabd_domain::Timestamp;
use grabd_domain::ids::MonitorId;
use grabd_domain::monitor::{Monitor, RunOutcome};
use sea_orm::ActiveValue::{Set, Unchanged};
use sea_orm::{ActiveModelTrait, ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};

use super::access::has_access;
use super::monitor_ref::{MonitorRef, read};
use crate::Result;
use crate::areas::Monitors;
use crate::audit::AuditEvent;
use crate::database::{Transaction, Tx};
use crate::entities::{monitor, monitor_run};

struct SetFeed {
    target: MonitorRef,
    hash: Option<[u8; 32]>,
}

impl Monitors<'_> {
    /// Gives the feed of a monitor an address, which replaces the former one, or removes it. `false` when the caller has no such
    /// monitor.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn set_feed(self, target: MonitorRef, hash: Option<[u8; 32]>) -> Result<bool> {
        let action = if hash.is_some() { "monitor.feed" } else { "monitor.feed_off" };
        let event = AuditEvent::new(action, &target.monitor, Some(target.team));
        self.store.write_audited(SetFeed { target, hash }, event, |found: &bool| *found).await
    }

    /// The monitor whose feed has this address. `None` if there is none, if its team is not active, or if the app that created it
    /// has no access at the moment.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn find_by_feed(self, hash: [u8; 32], now: Timestamp) -> Result<Option<Monitor>> {
        let db = self.store.database.reader();
        let found = monitor::Entity::find().filter(monitor::Column::FeedHash.eq(hash.to_vec())).one(db).await?;
        let Some(row) = found else { return Ok(None) };
        if !has_access(db, &row, now).await? {
            return Ok(None);
        }
        Ok(Some(read(db, &row).await?))
    }

    /// The due time of the newest run with a change, among those that are kept. `None` if there is none.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn last_change(self, monitor: MonitorId) -> Result<Option<Timestamp>> {
        let newest: Option<i64> = monitor_run::Entity::find()
            .select_only()
            .column(monitor_run::Column::DueAt)
            .filter(monitor_run::Column::MonitorId.eq(monitor.0))
            .filter(monitor_run::Column::Outcome.eq(monitor_run::outcome(RunOutcome::Changed)))
            .order_by_desc(monitor_run::Column::DueAt)
            .limit(1)
            .into_tuple()
            .one(self.store.database.reader())
            .await?;
        Ok(newest.map(Timestamp::from_ms))
    }
}

impl Transaction for SetFeed {
    type Outcome = bool;
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<bool> {
        let Some(row) = self.target.lock(tx).await? else { return Ok(false) };
        let feed_hash = Set(self.hash.map(|hash| hash.to_vec()));
        monitor::ActiveModel { id: Unchanged(row.id), feed_hash, ..Default::default() }.update(tx).await?;
        Ok(true)
    }
}
