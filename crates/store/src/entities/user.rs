//! People who sign in.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "user")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) id: Uuid,
    /// In lower case.
    pub(crate) email: String,
    /// A PHC string of argon2id.
    pub(crate) password_hash: String,
    pub(crate) created_at: i64,
    /// Sees how the whole service is.
    pub(crate) operator: bool,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
