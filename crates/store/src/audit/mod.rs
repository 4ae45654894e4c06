//! The audit trail: an entry is written in the transaction of the change that it records.

#[cfg(test)]
mod plans;
mod queries;
mod search;

use std::fmt::Display;
use std::sync::Arc;

use grabd_domain::Timestamp;
use grabd_domain::ids::TeamId;
use sea_orm::ActiveValue::Set;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};

use crate::actor::Actor;
use crate::areas::AuditTrail;
use crate::database::{Transaction, Tx};
use crate::entities::audit;
use crate::{Result, Store};

pub use queries::AuditEntry;
pub use search::{AuditFilter, NamedEntry};

/// Entries of the last 30 days before the newest one are always kept. A trigger enforces this.
const KEPT_MS: i64 = 30 * 24 * 60 * 60 * 1000;
/// The action of a complete backup. A partial index in the schema names it.
pub(crate) const BACKUP: &str = "backup.create";
/// Maximum length of a text of an entry in characters. Longer texts are cut.
const MAX_CHARS: usize = 500;

/// What an entry records.
#[derive(Clone, Debug)]
pub(crate) struct AuditEvent {
    /// What was done, such as `key.create`.
    pub(crate) action: &'static str,
    /// What it was done to: an id, an e-mail address or a domain.
    pub(crate) target: String,
    /// The team that it affects.
    pub(crate) team: Option<TeamId>,
    /// Details, such as a reason or a number of credits.
    pub(crate) detail: Option<String>,
}

impl AuditEvent {
    pub(crate) fn new(action: &'static str, target: &dyn Display, team: Option<TeamId>) -> Self {
        Self { action, target: target.to_string(), team, detail: None }
    }

    pub(crate) fn with(self, detail: &dyn Display) -> Self {
        Self { detail: Some(detail.to_string()), ..self }
    }

    /// Writes the entry.
    pub(crate) async fn record(&self, tx: &Tx, actor: &Actor) -> Result<()> {
        let cut = |text: &str| text.chars().take(MAX_CHARS).collect::<String>();
        let row = audit::ActiveModel {
            at: Set(actor.now.as_ms()),
            actor: Set(cut(&actor.name)),
            action: Set(self.action.to_owned()),
            target: Set(cut(&self.target)),
            team_id: Set(self.team.map(|team| team.0)),
            address: Set(actor.address.map(|address| address.to_string())),
            detail: Set(self.detail.as_deref().map(cut)),
            ..Default::default()
        };
        audit::Entity::insert(row).exec_without_returning(tx).await?;
        Ok(())
    }
}

/// A change, and the function from its outcome to the entries that record it.
struct Audited<T, F> {
    change: T,
    describe: F,
    actor: Arc<Actor>,
}

impl<T, F> Transaction for Audited<T, F>
where
    T: Transaction,
    F: Fn(&T::Outcome) -> Vec<AuditEvent> + Send + Sync + 'static,
{
    type Outcome = T::Outcome;

    async fn apply(&self, tx: &Tx) -> Result<T::Outcome> {
        let outcome = self.change.apply(tx).await?;
        let events = (self.describe)(&outcome);
        for event in events {
            event.record(tx, &self.actor).await?;
        }
        Ok(outcome)
    }
}

struct Record {
    event: AuditEvent,
    actor: Arc<Actor>,
}

impl Transaction for Record {
    type Outcome = ();

    async fn apply(&self, tx: &Tx) -> Result<()> {
        self.event.record(tx, &self.actor).await
    }
}

struct PurgeAudit {
    before: Timestamp,
    limit: u64,
}

impl Store {
    /// The same store, whose changes are recorded in the audit trail as made by `actor`. Without an actor, changes are
    /// not recorded: the service makes many by itself.
    #[must_use]
    pub fn acting_as(&self, actor: Actor) -> Self {
        Self { actor: Some(Arc::new(actor)), ..self.clone() }
    }

    /// Runs a change. It is recorded if there is an actor and `happened` is true for its outcome.
    pub(crate) async fn write_audited<T: Transaction>(
        &self,
        change: T,
        event: AuditEvent,
        happened: fn(&T::Outcome) -> bool,
    ) -> Result<T::Outcome> {
        self.write_described(change, move |outcome| happened(outcome).then(|| event.clone())).await
    }

    /// The same for an entry that depends on the outcome. It is recorded if there is an actor.
    pub(crate) async fn write_described<T, F>(&self, change: T, describe: F) -> Result<T::Outcome>
    where
        T: Transaction,
        F: Fn(&T::Outcome) -> Option<AuditEvent> + Send + Sync + 'static,
    {
        self.write_described_all(change, move |outcome| describe(outcome).into_iter().collect()).await
    }

    /// The same for a change that several entries record, such as one for each of the rows that it makes.
    pub(crate) async fn write_described_all<T, F>(&self, change: T, describe: F) -> Result<T::Outcome>
    where
        T: Transaction,
        F: Fn(&T::Outcome) -> Vec<AuditEvent> + Send + Sync + 'static,
    {
        match self.actor.clone() {
            Some(actor) => self.database.write(Audited { change, describe, actor }).await,
            None => self.database.write(change).await,
        }
    }
}

impl AuditTrail<'_> {
    /// Records that the actor signed in as an operator. Does nothing without an actor.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn record_operator_sign_in(self, email: &str) -> Result<()> {
        let Some(actor) = self.store.actor.clone() else { return Ok(()) };
        self.store.database.write(Record { event: AuditEvent::new("operator.sign_in", &email, None), actor }).await
    }

    /// Records that the key of stored secrets was replaced. Does nothing without an actor.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn record_rotation(self) -> Result<()> {
        let Some(actor) = self.store.actor.clone() else { return Ok(()) };
        self.store
            .database
            .write(Record { event: AuditEvent::new("secrets.rotate", &"secrets.key_file", None), actor })
            .await
    }

    /// Records a complete backup. Does nothing without an actor.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn record_backup(self, directory: &str) -> Result<()> {
        let Some(actor) = self.store.actor.clone() else { return Ok(()) };
        self.store.database.write(Record { event: AuditEvent::new(BACKUP, &directory, None), actor }).await
    }

    /// Deletes up to `limit` entries from before a time, and returns their number. Entries of the 30 days before the
    /// newest one are kept.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn purge_audit(self, before: Timestamp, limit: u32) -> Result<u64> {
        self.store.database.write(PurgeAudit { before, limit: limit.into() }).await
    }
}

impl Transaction for PurgeAudit {
    type Outcome = u64;

    async fn apply(&self, tx: &Tx) -> Result<u64> {
        let at = || audit::Entity::find().select_only().column(audit::Column::At);
        let newest: Option<i64> = at().order_by_desc(audit::Column::At).limit(1).into_tuple().one(tx).await?;
        let Some(newest) = newest else { return Ok(0) };
        let before = Ord::min(self.before.as_ms(), newest.saturating_sub(KEPT_MS));
        let old: Vec<i64> = audit::Entity::find()
            .select_only()
            .column(audit::Column::Id)
            .filter(audit::Column::At.lt(before))
            .order_by_asc(audit::Column::At)
            .limit(self.limit)
            .into_tuple()
            .all(tx)
            .await?;
        if old.is_empty() {
            return Ok(0);
        }
        // The number of ids varies, but a purge is rare.
        Ok(audit::Entity::delete_many().filter(audit::Column::Id.is_in(old)).exec(tx).await?.rows_affected)
    }
}
