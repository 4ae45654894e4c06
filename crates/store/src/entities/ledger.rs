//! The ledger. Triggers make the table append-only.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "ledger")]
pub(crate) struct Model {
    #[sea_orm(primary_key)]
    pub(crate) id: i64,
    pub(crate) team_id: Uuid,
    pub(crate) lot_id: i64,
    pub(crate) kind: i16,
    pub(crate) amount: i32,
    pub(crate) grab_id: Option<Uuid>,
    #[sea_orm(column_name = "ref")]
    pub(crate) reference: Option<String>,
    pub(crate) at: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
