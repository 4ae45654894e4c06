//! The second factor of a user, which is on while the row exists.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "second_factor")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) user_id: Uuid,
    /// The encrypted secret of the authenticator app. Empty if the user has only passkeys.
    pub(crate) secret: Vec<u8>,
    /// The time step (RFC 6238) of the last accepted code. Only codes of later steps are accepted.
    pub(crate) last_step: i64,
    pub(crate) created_at: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
