//! The keys that sign evidence. At most one is not retired.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "evidence_keys")]
pub(crate) struct Model {
    /// The thumbprint of the public key.
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) id: String,
    pub(crate) public_key: Vec<u8>,
    /// Encrypted by the engine. NULL: the key is retired.
    pub(crate) private_key: Option<Vec<u8>>,
    pub(crate) created_at: i64,
    pub(crate) retired_at: Option<i64>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
