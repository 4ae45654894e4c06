//! User accounts.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "user")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) id: Uuid,
    /// In lower case.
    pub(crate) email: String,
    /// Argon2id hash as a PHC string.
    pub(crate) password_hash: String,
    pub(crate) created_at: i64,
    /// Whether the user is an operator of the service.
    pub(crate) operator: bool,
    /// When the user proved that they read the address's mail.
    pub(crate) verified_at: Option<i64>,
    /// A suspended user cannot sign in.
    pub(crate) suspended_at: Option<i64>,
    /// For operators.
    pub(crate) suspended_reason: Option<String>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
