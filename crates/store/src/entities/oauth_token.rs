//! OAuth access and refresh tokens.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "oauth_token")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false, column_type = "VarBinary(StringLen::N(32))")]
    pub(crate) hash: Vec<u8>,
    pub(crate) grant_id: Uuid,
    pub(crate) kind: i16,
    pub(crate) created_at: i64,
    pub(crate) expires_at: i64,
    /// When the refresh token was exchanged.
    pub(crate) rotated_at: Option<i64>,
    /// The refresh token that this token was issued for.
    #[sea_orm(column_type = "VarBinary(StringLen::N(32))", nullable)]
    pub(crate) parent: Option<Vec<u8>>,
    /// How often the refresh token was exchanged again.
    pub(crate) siblings: i32,
    /// What an access token may be used for, unless its grant allows less.
    pub(crate) scopes: i16,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {
    #[sea_orm(
        belongs_to = "super::oauth_grant::Entity",
        from = "Column::GrantId",
        to = "super::oauth_grant::Column::Id"
    )]
    Grant,
}

impl ActiveModelBehavior for ActiveModel {}
