//! The secret options of jobs. They are a column of `job`, which is an entity of its own here, because they may have a
//! megabyte and most reads of jobs do not need them.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "job")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) grab_id: Uuid,
    /// Encrypted by the engine.
    pub(crate) secrets: Option<Vec<u8>>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
