//! Browsers that somebody has signed in with.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "device")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) user_id: Uuid,
    /// SHA-256 of the browser's token.
    #[sea_orm(primary_key, auto_increment = false, column_type = "VarBinary(StringLen::N(32))")]
    pub(crate) hash: Vec<u8>,
    /// SHA-256 of the user and the network of the last sign-in.
    #[sea_orm(column_type = "VarBinary(StringLen::N(32))")]
    pub(crate) network: Vec<u8>,
    pub(crate) created_at: i64,
    /// The last sign-in.
    pub(crate) seen_at: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
