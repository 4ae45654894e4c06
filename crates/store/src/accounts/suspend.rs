//! Suspends and restores teams. The credentials and pages of a suspended team are refused from the next request on, and
//! its open grabs end uncharged. Its images, keys and credits stay.

use grabd_domain::Timestamp;
use grabd_domain::ids::{GrabId, TeamId};
use sea_orm::sea_query::{Expr, LockType};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QuerySelect};

use crate::Result;
use crate::areas::Accounts;
use crate::audit::AuditEvent;
use crate::codes::{ACTIVE, SUSPENDED};
use crate::database::{Transaction, Tx};
use crate::entities::{job, team};

/// Outcome of suspending or restoring a team.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuspendOutcome {
    /// The team was changed.
    Changed,
    /// The team was in that state before.
    Unchanged,
    /// The team does not exist, or was deleted.
    UnknownTeam,
}

/// A change of the state of a team. `reason` is `None` to restore it.
struct SetSuspended {
    team: TeamId,
    reason: Option<String>,
    now: Timestamp,
}

impl Accounts<'_> {
    /// Suspends a team. The reason is for operators. No grab can be created after this returns; end the open ones with
    /// [`Accounts::open_grabs_of`](crate::areas::Accounts::open_grabs_of).
    ///
    /// # Errors
    /// Database errors only.
    pub async fn suspend_team(self, team: TeamId, reason: &str, now: Timestamp) -> Result<SuspendOutcome> {
        let event = AuditEvent::new("team.suspend", &team, Some(team)).with(&reason);
        let change = SetSuspended { team, reason: Some(reason.to_owned()), now };
        self.store.write_audited(change, event, |outcome| *outcome == SuspendOutcome::Changed).await
    }

    /// Restores a suspended team.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn restore_team(self, team: TeamId, now: Timestamp) -> Result<SuspendOutcome> {
        let event = AuditEvent::new("team.restore", &team, Some(team));
        let change = SetSuspended { team, reason: None, now };
        self.store.write_audited(change, event, |outcome| *outcome == SuspendOutcome::Changed).await
    }

    /// Up to `limit` open live grabs of a team.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn open_grabs_of(self, team: TeamId, limit: u32) -> Result<Vec<GrabId>> {
        let open = job::Entity::find()
            .select_only()
            .column(job::Column::GrabId)
            .filter(job::Column::TeamId.eq(team.0))
            .limit(u64::from(limit))
            .into_tuple::<uuid::Uuid>()
            .all(self.store.database.reader())
            .await?;
        Ok(open.into_iter().map(GrabId).collect())
    }
}

impl Transaction for SetSuspended {
    type Outcome = SuspendOutcome;

    async fn apply(&self, tx: &Tx) -> Result<SuspendOutcome> {
        // Serializes with creates, which lock the active team.
        let row = team::Entity::find_by_id(self.team.0).lock(LockType::NoKeyUpdate).one(tx).await?;
        let Some(row) = row.filter(|row| row.deleted_at.is_none()) else { return Ok(SuspendOutcome::UnknownTeam) };
        let status = if self.reason.is_some() { SUSPENDED } else { ACTIVE };
        if row.status == status {
            return Ok(SuspendOutcome::Unchanged);
        }
        let at = self.reason.is_some().then(|| self.now.as_ms());
        team::Entity::update_many()
            .col_expr(team::Column::Status, Expr::value(status))
            .col_expr(team::Column::SuspendedAt, Expr::value(at))
            .col_expr(team::Column::SuspendedReason, Expr::value(self.reason.clone()))
            .filter(team::Column::Id.eq(self.team.0))
            .exec(tx)
            .await?;
        Ok(SuspendOutcome::Changed)
    }
}
