//! OAuth grants: what a user allowed an app to do.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "oauth_grant")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) id: Uuid,
    pub(crate) team_id: Uuid,
    pub(crate) user_id: Uuid,
    pub(crate) env: i16,
    pub(crate) client_id: String,
    pub(crate) client_name: String,
    pub(crate) client_host: Option<String>,
    /// Separated by spaces; empty means all.
    pub(crate) resources: String,
    pub(crate) created_at: i64,
    pub(crate) expires_at: i64,
    /// When the code was exchanged. Until then the app has no tokens.
    pub(crate) connected_at: Option<i64>,
    pub(crate) last_used_at: Option<i64>,
    /// What the user lets the app do.
    pub(crate) scopes: i16,
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

impl ActiveModelBehavior for ActiveModel {}
