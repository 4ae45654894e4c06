//! Passkeys. Each is part of the second factor of its user.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "passkey")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) id: Uuid,
    pub(crate) user_id: Uuid,
    /// The id that the device chose. Unique.
    #[sea_orm(column_type = "VarBinary(StringLen::N(1023))")]
    pub(crate) credential_id: Vec<u8>,
    /// The public key and what is known about the device, as JSON.
    #[sea_orm(column_type = "Text")]
    pub(crate) credential: String,
    /// Signatures that the device says it has made; 0 if it does not count.
    pub(crate) counter: i64,
    pub(crate) name: String,
    pub(crate) created_at: i64,
    pub(crate) last_used_at: Option<i64>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
