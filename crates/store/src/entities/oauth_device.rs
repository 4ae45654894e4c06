//! Requests of the device authorization grant.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "oauth_device")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false, column_type = "VarBinary(StringLen::N(32))")]
    pub(crate) hash: Vec<u8>,
    #[sea_orm(unique)]
    pub(crate) user_code: String,
    pub(crate) request: String,
    pub(crate) expires_at: i64,
    pub(crate) polled_at: Option<i64>,
    pub(crate) decision: Option<i16>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
