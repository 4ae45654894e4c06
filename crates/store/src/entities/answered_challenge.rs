//! Challenges for passkeys that were answered, until they would have expired.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "answered_challenge")]
pub(crate) struct Model {
    /// SHA-256 of the challenge.
    #[sea_orm(primary_key, auto_increment = false, column_type = "VarBinary(StringLen::N(32))")]
    pub(crate) hash: Vec<u8>,
    pub(crate) expires_at: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
