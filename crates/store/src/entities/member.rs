//! Team memberships.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "member")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) team_id: Uuid,
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) user_id: Uuid,
    pub(crate) role: i16,
    pub(crate) created_at: i64,
    /// When the member hid the first steps of the team.
    pub(crate) first_steps_hidden_at: Option<i64>,
    /// 1: the member was chosen to get the alerts about the balance.
    pub(crate) gets_alerts: i16,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {
    #[sea_orm(belongs_to = "super::team::Entity", from = "Column::TeamId", to = "super::team::Column::Id")]
    Team,
    #[sea_orm(belongs_to = "super::user::Entity", from = "Column::UserId", to = "super::user::Column::Id")]
    User,
}

impl Related<super::team::Entity> for Entity {
    fn to() -> RelationDef {
        Relation::Team.def()
    }
}

impl Related<super::user::Entity> for Entity {
    fn to() -> RelationDef {
        Relation::User.def()
    }
}

impl ActiveModelBehavior for ActiveModel {}
