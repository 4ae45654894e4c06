//! Somebody founds a team, or calls theirs something else.

use grabd_domain::Timestamp;
use grabd_domain::accounts::Role;
use grabd_domain::ids::{TeamId, UserId};
use grabd_domain::teams::{Name, TEAMS};
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{Expr, LockType};
use sea_orm::{ColumnTrait, EntityTrait, PaginatorTrait, QueryFilter, QuerySelect};

use super::{Answered, Refusal, allowed, enter_as_owner};
use crate::database::{Transaction, Tx};
use crate::entities::{member, team, user};
use crate::transactions::accounts::NewTeam;
use crate::{Result, Store, codes};

struct Founding {
    team: TeamId,
    name: Name,
    by: UserId,
    now: Timestamp,
}

struct Renaming {
    team: TeamId,
    name: Name,
    by: UserId,
}

impl Store {
    /// Creates a team that this person owns, without credits and keys.
    ///
    /// # Errors
    /// Only of the database; a refusal is an outcome.
    pub async fn found_team(&self, team: TeamId, name: Name, by: UserId, now: Timestamp) -> Result<Answered> {
        self.database.write(Founding { team, name, by, now }).await
    }

    /// Calls a team something else.
    ///
    /// # Errors
    /// Only of the database; a refusal is an outcome.
    pub async fn rename_team(&self, team: TeamId, name: Name, by: UserId) -> Result<Answered> {
        self.database.write(Renaming { team, name, by }).await
    }
}

impl Transaction for Founding {
    type Outcome = Answered;

    async fn apply(&self, tx: &Tx) -> Result<Answered> {
        // Two foundings at once would each see room for one more.
        if user::Entity::find_by_id(self.by.0).lock(LockType::NoKeyUpdate).one(tx).await?.is_none() {
            return Ok(Err(Refusal::NotIn));
        }
        if member::Entity::find().filter(member::Column::UserId.eq(self.by.0)).count(tx).await? >= TEAMS {
            return Ok(Err(Refusal::Full));
        }
        NewTeam { id: self.team, name: self.name.to_string(), now: self.now }.apply(tx).await?;
        let row = member::ActiveModel {
            team_id: Set(self.team.0),
            user_id: Set(self.by.0),
            role: Set(codes::role(Role::Owner)),
            created_at: Set(self.now.as_ms()),
        };
        member::Entity::insert(row).exec_without_returning(tx).await?;
        Ok(Ok(()))
    }
}

impl Transaction for Renaming {
    type Outcome = Answered;

    async fn apply(&self, tx: &Tx) -> Result<Answered> {
        allowed!(enter_as_owner(tx, self.team, self.by));
        team::Entity::update_many()
            .col_expr(team::Column::Name, Expr::value(self.name.to_string()))
            .filter(team::Column::Id.eq(self.team.0))
            .exec(tx)
            .await?;
        Ok(Ok(()))
    }
}
