//! Filtered reads of the audit trail, with the names of what its entries are about.

use std::collections::{BTreeMap, BTreeSet};

use grabd_domain::Timestamp;
use grabd_domain::ids::TeamId;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, Select};
use uuid::Uuid;

use super::queries::{AuditEntry, read, user};
use crate::Result;
use crate::areas::AuditTrail;
use crate::entities::{api_key, audit, team, user as user_row};
use crate::padded::padded;

/// Which entries are wanted. Each condition applies if it is given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Entries that affect one of these teams.
    pub teams: Option<Vec<TeamId>>,
    /// Entries of this actor, as in [`Actor`](crate::Actor).
    pub actor: Option<String>,
    /// Entries of one of these actions.
    pub actions: Option<Vec<&'static str>>,
    /// Entries of this time and later.
    pub since: Option<Timestamp>,
    /// Entries before this time.
    pub until: Option<Timestamp>,
}

/// An entry, and the names of what it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedEntry {
    /// The entry.
    pub entry: AuditEntry,
    /// The name of the team that it affects. `None`: it affects none, or the team was deleted.
    pub team_name: Option<String>,
    /// The address of the user, or the name of the key, that its target is the id of. `None`: it is not an id, or what had it
    /// was deleted.
    pub target_name: Option<String>,
    /// Whether the actor is an operator now.
    pub is_by_operator: bool,
}

impl AuditTrail<'_> {
    /// Up to `limit` entries that match, newest first, optionally only those before the entry `before`.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn search(self, filter: &AuditFilter, before: Option<i64>, limit: u32) -> Result<Vec<NamedEntry>> {
        let reader = self.store.database.reader();
        let rows = matching(filter, before, limit).all(reader).await?;
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let targets: BTreeSet<Uuid> = rows.iter().filter_map(|row| row.target.parse().ok()).collect();
        let users: BTreeSet<Uuid> = rows.iter().filter_map(|row| user(&row.actor)).chain(targets.clone()).collect();
        let users: Vec<(Uuid, String, bool)> = user_row::Entity::find()
            .select_only()
            .columns([user_row::Column::Id, user_row::Column::Email, user_row::Column::Operator])
            .filter(user_row::Column::Id.is_in(padded(users)))
            .into_tuple()
            .all(reader)
            .await?;
        let users: BTreeMap<Uuid, (String, bool)> =
            users.into_iter().map(|(id, email, is_operator)| (id, (email, is_operator))).collect();
        let keys: Vec<(Uuid, String)> = api_key::Entity::find()
            .select_only()
            .columns([api_key::Column::Id, api_key::Column::Name])
            .filter(api_key::Column::Id.is_in(padded(targets)))
            .into_tuple()
            .all(reader)
            .await?;
        let teams: BTreeSet<Uuid> = rows.iter().filter_map(|row| row.team_id).collect();
        let teams: Vec<(Uuid, String)> = team::Entity::find()
            .select_only()
            .columns([team::Column::Id, team::Column::Name])
            .filter(team::Column::Id.is_in(padded(teams)))
            .filter(team::Column::DeletedAt.is_null())
            .into_tuple()
            .all(reader)
            .await?;
        let (keys, teams): (BTreeMap<_, _>, BTreeMap<_, _>) = (keys.into_iter().collect(), teams.into_iter().collect());
        let named = |row: audit::Model| {
            let target: Option<Uuid> = row.target.parse().ok();
            let user_name = target.and_then(|id| users.get(&id)).map(|(email, _)| email.clone());
            let actor = user(&row.actor).and_then(|id| users.get(&id));
            NamedEntry {
                team_name: row.team_id.and_then(|id| teams.get(&id)).cloned(),
                target_name: user_name.or_else(|| keys.get(&target?).cloned()),
                is_by_operator: actor.is_some_and(|(_, is_operator)| *is_operator),
                entry: read(row, actor.map(|(email, _)| email.clone())),
            }
        };
        Ok(rows.into_iter().map(named).collect())
    }
}

pub(super) fn matching(filter: &AuditFilter, before: Option<i64>, limit: u32) -> Select<audit::Entity> {
    let AuditFilter { teams, actor, actions, since, until } = filter;
    let mut query = audit::Entity::find();
    // A comparison with one value is answered in the order of an index, a list is not.
    query = match teams.as_deref() {
        None => query,
        Some([team]) => query.filter(audit::Column::TeamId.eq(team.0)),
        Some(teams) => query.filter(audit::Column::TeamId.is_in(padded(teams.iter().map(|team| team.0)))),
    };
    query = match actions.as_deref() {
        None => query,
        Some([action]) => query.filter(audit::Column::Action.eq(*action)),
        Some(actions) => query.filter(audit::Column::Action.is_in(actions.iter().copied())),
    };
    if let Some(actor) = actor {
        query = query.filter(audit::Column::Actor.eq(actor.as_str()));
    }
    if let Some(since) = since {
        query = query.filter(audit::Column::At.gte(since.as_ms()));
    }
    if let Some(until) = until {
        query = query.filter(audit::Column::At.lt(until.as_ms()));
    }
    if let Some(before) = before {
        query = query.filter(audit::Column::Id.lt(before));
    }
    query.order_by_desc(audit::Column::Id).limit(u64::from(limit))
}
