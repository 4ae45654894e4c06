//! Reads of what teams and payers store.

use grabd_domain::accounts::Role;
use grabd_domain::ids::{PayerId, TeamId};
use grabd_domain::storage::StoredBytes;
use sea_orm::sea_query::{Expr, ExprTrait, Query};
use sea_orm::{ColumnTrait, EntityTrait, FromQueryResult, QueryFilter, QueryOrder, QuerySelect, Select};
use uuid::Uuid;

use crate::areas::Grabs;
use crate::entities::{member, team_storage};
use crate::first_owner::first_owner;
use crate::{Result, codes};

/// What a payer stores, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayerStorage {
    /// The payer.
    pub payer: PayerId,
    /// All its bytes.
    pub bytes: u64,
}

#[derive(FromQueryResult)]
struct Sums {
    images: i64,
    test: i64,
    uncharged: i64,
    charged: i64,
}

impl Grabs<'_> {
    /// What a team stores. One index lookup.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn storage_of_team(self, team: TeamId) -> Result<StoredBytes> {
        let row = team_storage::Entity::find_by_id(team.0).one(self.store.database.reader()).await?;
        Ok(team_storage::read(row.as_ref()))
    }

    /// The size of all images of a team's live grabs and of their attachments, in bytes. One index lookup.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn stored_bytes(self, team: TeamId) -> Result<u64> {
        Ok(u64::try_from(self.storage_of_team(team).await?.images).unwrap_or(0))
    }

    /// What the other teams of the team's payer store.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn storage_of_others(self, team: TeamId) -> Result<StoredBytes> {
        let owner = || Expr::from(first_owner(Expr::value(team.0)));
        let owned = Query::select()
            .column((member::Entity, member::Column::TeamId))
            .from(member::Entity)
            .and_where(Expr::col((member::Entity, member::Column::UserId)).eq(owner()))
            .and_where(member::Column::Role.eq(codes::role(Role::Owner)))
            .take();
        let of_other = Expr::from(first_owner(team_column()));
        let others = team_storage::Entity::find()
            .filter(team_storage::Column::TeamId.ne(team.0))
            .filter(team_storage::Column::TeamId.in_subquery(owned))
            .filter(of_other.eq(owner()));
        let sums = sums(others).into_model::<Sums>().one(self.store.database.reader()).await?;
        Ok(sums.map_or(StoredBytes::default(), |Sums { images, test, uncharged, charged }| StoredBytes {
            images,
            test,
            uncharged,
            charged,
        }))
    }

    /// The payers that store the most, up to `limit`, and what all payers store together.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn largest_payers(self, limit: u32) -> Result<(Vec<PayerStorage>, u64)> {
        let payer = Expr::from(first_owner(team_column())).if_null(team_column());
        let bytes = Expr::cust("CAST(SUM(bytes + test_bytes + uncharged_bytes + charged_bytes) AS bigint)");
        let rows: Vec<(Uuid, i64)> = team_storage::Entity::find()
            .select_only()
            .expr_as(payer, "payer")
            .expr_as(bytes.clone(), "stored")
            .group_by(Expr::cust("1"))
            .order_by(Expr::cust("2"), sea_orm::Order::Desc)
            .limit(u64::from(limit))
            .into_tuple()
            .all(self.store.database.reader())
            .await?;
        let all: Option<Option<i64>> = team_storage::Entity::find()
            .select_only()
            .expr_as(bytes, "stored")
            .into_tuple()
            .one(self.store.database.reader())
            .await?;
        let size = |bytes: i64| u64::try_from(bytes).unwrap_or(0);
        let payers = rows.into_iter().map(|(payer, bytes)| PayerStorage { payer: PayerId(payer), bytes: size(bytes) });
        Ok((payers.collect(), size(all.flatten().unwrap_or(0))))
    }
}

fn team_column() -> Expr {
    Expr::col((team_storage::Entity, team_storage::Column::TeamId))
}

fn sums(teams: Select<team_storage::Entity>) -> Select<team_storage::Entity> {
    let sum = |column| Expr::cust(format!("CAST(COALESCE(SUM({column}), 0) AS bigint)"));
    teams
        .select_only()
        .expr_as(sum("bytes"), "images")
        .expr_as(sum("test_bytes"), "test")
        .expr_as(sum("uncharged_bytes"), "uncharged")
        .expr_as(sum("charged_bytes"), "charged")
}
