//! Limits that operators override for a team.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "team_limit")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) team_id: Uuid,
    /// Of the limit.
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) name: String,
    pub(crate) value: i64,
    pub(crate) changed_at: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
