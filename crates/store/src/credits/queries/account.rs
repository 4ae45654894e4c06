//! The account that a team's renders are counted for.

use grabd_domain::accounts::Role;
use grabd_domain::admission::Account;
use grabd_domain::credits::LotKind;
use grabd_domain::ids::{AccountId, TeamId};
use sea_orm::{ColumnTrait, Condition, EntityTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait};
use uuid::Uuid;

use crate::Result;
use crate::areas::Credits;
use crate::codes;
use crate::entities::{lot, member};

impl Credits<'_> {
    /// The account of a team: its first owner, or the team itself. An account has paid if one of its teams ever had a
    /// subscription, or a lot whose reference starts with none of `free_references`.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn account(self, team: TeamId, free_references: &[&str]) -> Result<Account> {
        let owner: Option<Uuid> = member::Entity::find()
            .select_only()
            .column(member::Column::UserId)
            .filter(member::Column::TeamId.eq(team.0))
            .filter(member::Column::Role.eq(codes::role(Role::Owner)))
            .order_by_asc(member::Column::CreatedAt)
            .order_by_asc(member::Column::UserId)
            .limit(1)
            .into_tuple()
            .one(self.store.database.reader())
            .await?;
        let mut of_account = Condition::any().add(lot::Column::TeamId.eq(team.0));
        if let Some(owner) = owner {
            let owned = member::Entity::find()
                .select_only()
                .column(member::Column::TeamId)
                .filter(member::Column::UserId.eq(owner))
                .filter(member::Column::Role.eq(codes::role(Role::Owner)));
            of_account = of_account.add(lot::Column::TeamId.in_subquery(owned.into_query()));
        }
        let not_free = free_references
            .iter()
            .fold(Condition::all(), |all, prefix| all.add(lot::Column::SourceRef.not_like(format!("{prefix}%"))));
        let subscription = lot::Column::Kind.eq(codes::lot_kind(LotKind::Subscription));
        let paid: Option<i64> = lot::Entity::find()
            .select_only()
            .column(lot::Column::Id)
            .filter(of_account)
            .filter(Condition::any().add(subscription).add(not_free))
            .limit(1)
            .into_tuple()
            .one(self.store.database.reader())
            .await?;
        Ok(Account { id: AccountId(owner.unwrap_or(team.0)), has_paid: paid.is_some() })
    }
}
