//! Registered OAuth clients (apps).

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "oauth_client")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) id: String,
    #[sea_orm(column_type = "VarBinary(StringLen::N(32))", nullable)]
    pub(crate) secret_hash: Option<Vec<u8>>,
    pub(crate) name: String,
    /// Separated by newlines.
    pub(crate) redirect_uris: String,
    pub(crate) auth_method: i16,
    pub(crate) created_at: i64,
    /// When the client last received a consent or tokens.
    pub(crate) seen_at: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
