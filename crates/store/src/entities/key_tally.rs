//! Numbers of purged grabs of a key, by the day of their creation. Kept as long as usage is counted.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "key_tally")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) key_id: Uuid,
    /// Days since 1970-01-01.
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) day: i64,
    pub(crate) grabs: i64,
    /// How many of them were done.
    pub(crate) done: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
