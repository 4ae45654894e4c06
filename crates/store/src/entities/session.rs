//! Sign-in sessions of browsers.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "session")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false, column_type = "VarBinary(StringLen::N(32))")]
    pub(crate) hash: Vec<u8>,
    pub(crate) user_id: Uuid,
    pub(crate) created_at: i64,
    /// Last recorded use.
    pub(crate) seen_at: i64,
    pub(crate) expires_at: i64,
    /// The browser's `User-Agent`.
    pub(crate) agent: Option<String>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {
    #[sea_orm(belongs_to = "super::user::Entity", from = "Column::UserId", to = "super::user::Column::Id")]
    User,
}

impl Related<super::user::Entity> for Entity {
    fn to() -> RelationDef {
        Relation::User.def()
    }
}

impl ActiveModelBehavior for ActiveModel {}
