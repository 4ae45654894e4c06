//! Reads of the audit trail.

use std::collections::BTreeMap;

use grabd_domain::Timestamp;
use grabd_domain::audit::USER_ACTOR;
use grabd_domain::ids::TeamId;
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

use crate::Result;
use crate::areas::AuditTrail;
use crate::audit::BACKUP;
use crate::entities::{audit, user};
use crate::padded::padded;

/// An entry of the audit trail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// Its number. Later entries have larger ones.
    pub id: i64,
    /// When the change was made.
    pub at: Timestamp,
    /// Who made it, as in [`Actor`](crate::actor::Actor).
    pub actor: String,
    /// The current address of that user, if the account exists.
    pub email: Option<String>,
    /// What was done, such as `key.create`.
    pub action: String,
    /// What it was done to.
    pub target: String,
    /// The team that it affected.
    pub team: Option<TeamId>,
    /// The network address of the request.
    pub address: Option<String>,
    /// Details.
    pub detail: Option<String>,
}

impl AuditTrail<'_> {
    /// Up to `limit` entries made at `since` or later, newest first, optionally only those before the entry `before`.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn list_audit(self, since: Timestamp, before: Option<i64>, limit: u32) -> Result<Vec<AuditEntry>> {
        let mut query = audit::Entity::find().filter(audit::Column::At.gte(since.as_ms()));
        if let Some(before) = before {
            query = query.filter(audit::Column::Id.lt(before));
        }
        let newest_first = query.order_by_desc(audit::Column::Id).limit(u64::from(limit));
        let rows = newest_first.all(self.store.database.reader()).await?;
        let users: Vec<Uuid> = rows.iter().filter_map(|row| user(&row.actor)).collect();
        let emails: BTreeMap<Uuid, String> = match users.is_empty() {
            true => BTreeMap::new(),
            false => {
                let found = user::Entity::find()
                    .select_only()
                    .columns([user::Column::Id, user::Column::Email])
                    .filter(user::Column::Id.is_in(padded(users)))
                    .into_tuple::<(Uuid, String)>();
                found.all(self.store.database.reader()).await?.into_iter().collect()
            }
        };
        let email = |row: &audit::Model| user(&row.actor).and_then(|id| emails.get(&id).cloned());
        Ok(rows.into_iter().map(|row| (email(&row), row)).map(|(email, row)| read(row, email)).collect())
    }
}

impl AuditTrail<'_> {
    /// When the last backup was complete, if that is still in the audit trail.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn last_backup(self) -> Result<Option<Timestamp>> {
        let at: Option<i64> = audit::Entity::find()
            .select_only()
            .column(audit::Column::At)
            // Literally the predicate of the partial index: the planner cannot match one with parameters.
            .filter(Expr::cust(format!("action = '{BACKUP}'")))
            .order_by_desc(audit::Column::At)
            .limit(1)
            .into_tuple()
            .one(self.store.database.reader())
            .await?;
        Ok(at.map(Timestamp::from_ms))
    }
}

/// The user that an actor's name identifies.
pub(super) fn user(actor: &str) -> Option<Uuid> {
    actor.strip_prefix(USER_ACTOR)?.parse().ok()
}

/// The entry of a row. `email` is the current address of its actor.
pub(super) fn read(row: audit::Model, email: Option<String>) -> AuditEntry {
    let audit::Model { id, at, actor, action, target, team_id, address, detail } = row;
    let (at, team) = (Timestamp::from_ms(at), team_id.map(TeamId));
    AuditEntry { id, at, actor, email, action, target, team, address, detail }
}
