//! Pending invitations to teams.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "invitation")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) id: Uuid,
    #[sea_orm(column_type = "VarBinary(StringLen::N(32))")]
    pub(crate) hash: Vec<u8>,
    pub(crate) team_id: Uuid,
    /// In lower case.
    pub(crate) email: String,
    pub(crate) role: i16,
    pub(crate) invited_by: Uuid,
    pub(crate) created_at: i64,
    pub(crate) expires_at: i64,
    /// Whether the link was sent by e-mail only.
    pub(crate) mailed: bool,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {
    #[sea_orm(belongs_to = "super::team::Entity", from = "Column::TeamId", to = "super::team::Column::Id")]
    Team,
    #[sea_orm(belongs_to = "super::user::Entity", from = "Column::InvitedBy", to = "super::user::Column::Id")]
    InvitedBy,
}

impl Related<super::team::Entity> for Entity {
    fn to() -> RelationDef {
        Relation::Team.def()
    }
}

impl Related<super::user::Entity> for Entity {
    fn to() -> RelationDef {
        Relation::InvitedBy.def()
    }
}

impl ActiveModelBehavior for ActiveModel {}
