//! Overrides the limits of a team.

use grabd_domain::Timestamp;
use grabd_domain::ids::TeamId;
use grabd_domain::team_limits::{LimitChange, TeamLimit};
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{LockType, OnConflict};
use sea_orm::{ColumnTrait, EntityTrait, PaginatorTrait, QuerySelect};

use crate::Result;
use crate::areas::Limits;
use crate::audit::AuditEvent;
use crate::database::{Transaction, Tx};
use crate::entities::{team, team_limit};

/// Maximum number of overrides of all teams. The service keeps them in memory and reads all of them after a change.
pub const MAX_TEAM_LIMITS: u64 = 20_000;

/// Outcome of a change of limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeLimitsOutcome {
    /// The limits were changed.
    Changed,
    /// They have these values already.
    Unchanged,
    /// Nothing was changed: the team does not exist or is deleted.
    UnknownTeam,
    /// Nothing was changed: there would be more than [`MAX_TEAM_LIMITS`] overrides.
    TooMany,
}

struct ChangeLimits {
    team: TeamId,
    changes: Vec<LimitChange>,
    now: Timestamp,
}

impl Limits<'_> {
    /// Overrides limits of a team, or removes their overrides. Of several changes of one limit the last applies.
    ///
    /// # Errors
    /// Database errors only; a rejected change is an outcome.
    pub async fn change_team_limits(
        self,
        team: TeamId,
        changes: Vec<LimitChange>,
        now: Timestamp,
    ) -> Result<ChangeLimitsOutcome> {
        let detail = changes.iter().map(LimitChange::to_string).collect::<Vec<_>>().join(" ");
        let event = AuditEvent::new("team.limits", &team, Some(team)).with(&detail);
        let changed = |outcome: &ChangeLimitsOutcome| *outcome == ChangeLimitsOutcome::Changed;
        self.store.write_audited(ChangeLimits { team, changes, now }, event, changed).await
    }
}

impl Transaction for ChangeLimits {
    type Outcome = ChangeLimitsOutcome;

    async fn apply(&self, tx: &Tx) -> Result<ChangeLimitsOutcome> {
        // Serializes with other changes and with the deletion of the team.
        let row = team::Entity::find_by_id(self.team.0).lock(LockType::NoKeyUpdate).one(tx).await?;
        if row.is_none_or(|row| row.deleted_at.is_some()) {
            return Ok(ChangeLimitsOutcome::UnknownTeam);
        }
        // Checked before any write, because a rejection must not leave rows behind.
        let count = team_limit::Entity::find().count(tx).await?;
        let mut changed = Vec::new();
        let mut added: u64 = 0;
        for (at, LimitChange { limit, value }) in self.changes.iter().enumerate() {
            if self.changes.iter().skip(at + 1).any(|later| later.limit == *limit) {
                continue;
            }
            let existing = find(tx, self.team, *limit).await?;
            let value = value.map(i64::from);
            if existing.as_ref().map(|row| row.value) != value {
                added += u64::from(existing.is_none());
                changed.push((*limit, value));
            }
        }
        if changed.is_empty() {
            return Ok(ChangeLimitsOutcome::Unchanged);
        }
        if added > 0 && count + added > MAX_TEAM_LIMITS {
            return Ok(ChangeLimitsOutcome::TooMany);
        }
        // Later than all changes before, also if the clock was set back: see `TeamLimitsVersion`.
        let changed_at = latest(tx).await?.saturating_add(1).max(self.now.as_ms());
        for (limit, value) in changed {
            let key = (self.team.0, limit.as_str().to_owned());
            let Some(value) = value else {
                team_limit::Entity::delete_by_id(key).exec(tx).await?;
                continue;
            };
            let row = team_limit::ActiveModel {
                team_id: Set(key.0),
                name: Set(key.1),
                value: Set(value),
                changed_at: Set(changed_at),
            };
            let updated = [team_limit::Column::Value, team_limit::Column::ChangedAt];
            let on_conflict = OnConflict::columns([team_limit::Column::TeamId, team_limit::Column::Name])
                .update_columns(updated)
                .to_owned();
            team_limit::Entity::insert(row).on_conflict(on_conflict).exec_without_returning(tx).await?;
        }
        Ok(ChangeLimitsOutcome::Changed)
    }
}

/// The time of the latest change of any team's limits.
async fn latest(tx: &Tx) -> Result<i64> {
    let latest: Option<Option<i64>> = team_limit::Entity::find()
        .select_only()
        .column_as(team_limit::Column::ChangedAt.max(), "latest")
        .into_tuple()
        .one(tx)
        .await?;
    Ok(latest.flatten().unwrap_or(i64::MIN))
}

async fn find(tx: &Tx, team: TeamId, limit: TeamLimit) -> Result<Option<team_limit::Model>> {
    Ok(team_limit::Entity::find_by_id((team.0, limit.as_str().to_owned())).one(tx).await?)
}

/// The limit of a team, for a change that is rare enough to read it: its override, or `setting`.
pub(crate) async fn limit_of(tx: &Tx, team: TeamId, limit: TeamLimit, setting: u64) -> Result<u64> {
    Ok(find(tx, team, limit).await?.map_or(setting, |row| u64::try_from(row.value).unwrap_or(0)))
}
