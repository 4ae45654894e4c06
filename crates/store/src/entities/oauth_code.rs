//! OAuth authorization codes.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "oauth_code")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false, column_type = "VarBinary(StringLen::N(32))")]
    pub(crate) hash: Vec<u8>,
    pub(crate) grant_id: Uuid,
    pub(crate) redirect_uri: String,
    pub(crate) challenge: String,
    pub(crate) expires_at: i64,
    pub(crate) used_at: Option<i64>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
