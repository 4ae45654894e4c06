//! The payer that a team's renders are counted for.

use grabd_domain::accounts::Role;
use grabd_domain::admission::Payer;
use grabd_domain::credits::LotKind;
use grabd_domain::ids::{PayerId, TeamId};
use sea_orm::{ColumnTrait, Condition, EntityTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait};
use uuid::Uuid;

use crate::Result;
use crate::areas::Credits;
use crate::codes;
use crate::entities::{lot, member};

impl Credits<'_> {
    /// The payer of a team: its first owner, or the team itself. A payer has paid if one of its teams ever had a
    /// subscription, or a lot whose reference starts with none of `free_references`.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn payer(self, team: TeamId, free_references: &[&str]) -> Result<Payer> {
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
        let mut of_payer = Condition::any().add(lot::Column::TeamId.eq(team.0));
        if let Some(owner) = owner {
            let owned = member::Entity::find()
                .select_only()
                .column(member::Column::TeamId)
                .filter(member::Column::UserId.eq(owner))
                .filter(member::Column::Role.eq(codes::role(Role::Owner)));
            of_payer = of_payer.add(lot::Column::TeamId.in_subquery(owned.into_query()));
        }
        let not_free = free_references
            .iter()
            .fold(Condition::all(), |all, prefix| all.add(lot::Column::SourceRef.not_like(format!("{prefix}%"))));
        let subscription = lot::Column::Kind.eq(codes::lot_kind(LotKind::Subscription));
        let paid: Option<i64> = lot::Entity::find()
            .select_only()
            .column(lot::Column::Id)
            .filter(of_payer)
            .filter(Condition::any().add(subscription).add(not_free))
            .limit(1)
            .into_tuple()
            .one(self.store.database.reader())
            .await?;
        Ok(Payer { id: PayerId(owner.unwrap_or(team.0)), has_paid: paid.is_some() })
    }
}
