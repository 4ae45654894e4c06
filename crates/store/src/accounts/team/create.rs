//! Creates and renames teams.

use grabd_domain::Timestamp;
use grabd_domain::accounts::Role;
use grabd_domain::ids::{TeamId, UserId};
use grabd_domain::teams::{TEAMS, TeamName};
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{Expr, LockType};
use sea_orm::{ColumnTrait, EntityTrait, PaginatorTrait, QueryFilter, QuerySelect};

use super::{TeamResult, TeamRuleError, allowed, lock_as_owner};
use crate::accounts::teams_and_keys::NewTeam;
use crate::areas::Accounts;
use crate::audit::AuditEvent;
use crate::database::{Transaction, Tx};
use crate::entities::{member, team, user};
use crate::{Result, codes};

struct CreateTeam {
    team: TeamId,
    name: TeamName,
    by: UserId,
    now: Timestamp,
}

struct RenameTeam {
    team: TeamId,
    name: TeamName,
    by: UserId,
}

impl Accounts<'_> {
    /// Creates a team owned by this user, without credits or keys.
    ///
    /// # Errors
    /// Database errors only; a rejected change is an outcome.
    pub async fn create_owned_team(
        self,
        team: TeamId,
        name: TeamName,
        by: UserId,
        now: Timestamp,
    ) -> Result<TeamResult> {
        let event = AuditEvent::new("team.create", &team, Some(team));
        self.store.write_audited(CreateTeam { team, name, by, now }, event, TeamResult::is_ok).await
    }

    /// Renames a team.
    ///
    /// # Errors
    /// Database errors only; a rejected change is an outcome.
    pub async fn rename_team(self, team: TeamId, name: TeamName, by: UserId) -> Result<TeamResult> {
        let event = AuditEvent::new("team.rename", &team, Some(team)).with(&name);
        self.store.write_audited(RenameTeam { team, name, by }, event, TeamResult::is_ok).await
    }
}

impl Transaction for CreateTeam {
    type Outcome = TeamResult;

    async fn apply(&self, tx: &Tx) -> Result<TeamResult> {
        // Serializes concurrent creates of one user, so that the limit is exact.
        if user::Entity::find_by_id(self.by.0).lock(LockType::NoKeyUpdate).one(tx).await?.is_none() {
            return Ok(Err(TeamRuleError::NotMember));
        }
        if member::Entity::find().filter(member::Column::UserId.eq(self.by.0)).count(tx).await? >= TEAMS {
            return Ok(Err(TeamRuleError::LimitReached));
        }
        NewTeam { id: self.team, name: self.name.to_string(), now: self.now }.apply(tx).await?;
        let row = member::ActiveModel {
            team_id: Set(self.team.0),
            user_id: Set(self.by.0),
            role: Set(codes::role(Role::Owner)),
            created_at: Set(self.now.as_ms()),
            first_steps_hidden_at: Set(None),
            gets_alerts: Set(0),
        };
        member::Entity::insert(row).exec_without_returning(tx).await?;
        Ok(Ok(()))
    }
}

impl Transaction for RenameTeam {
    type Outcome = TeamResult;

    async fn apply(&self, tx: &Tx) -> Result<TeamResult> {
        allowed!(lock_as_owner(tx, self.team, self.by));
        team::Entity::update_many()
            .col_expr(team::Column::Name, Expr::value(self.name.to_string()))
            .filter(team::Column::Id.eq(self.team.0))
            .exec(tx)
            .await?;
        Ok(Ok(()))
    }
}
