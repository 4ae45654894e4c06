//! Refunds and disputes of payments. There may be no lot for the payment yet.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "payment_reversal")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) source_ref: String,
    /// Reference of its ledger entries.
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) reference: String,
    pub(crate) kind: i16,
    pub(crate) parts: i64,
    pub(crate) whole: i64,
    pub(crate) state: i16,
    pub(crate) created_at: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
