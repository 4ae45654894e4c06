//! Keys with which the service signs its requests to captured sites.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "identity_keys")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) number: i32,
    /// The thumbprint of the public key.
    pub(crate) key_id: String,
    /// The encrypted private key.
    pub(crate) secret: Vec<u8>,
    pub(crate) created_at: i64,
    pub(crate) used_from: i64,
    /// From then on, the key is not published.
    pub(crate) removed_at: Option<i64>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
