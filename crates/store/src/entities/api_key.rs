//! API keys. Only a hash of the secret is stored.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "api_key")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) id: Uuid,
    pub(crate) team_id: Uuid,
    pub(crate) env: i16,
    pub(crate) name: String,
    /// SHA-256 of the whole key.
    #[sea_orm(column_type = "VarBinary(StringLen::N(32))")]
    pub(crate) hash: Vec<u8>,
    pub(crate) last4: String,
    pub(crate) created_at: i64,
    pub(crate) revoked_at: Option<i64>,
    /// Accurate to an hour.
    pub(crate) last_used_at: Option<i64>,
    /// The secret of the key's links, encrypted by the engine. `None` until it is first requested.
    pub(crate) link_secret: Option<Vec<u8>>,
    /// When it was made. `None`: there is none, or an earlier version made it.
    pub(crate) link_secret_at: Option<i64>,
    pub(crate) scopes: i16,
    pub(crate) expires_at: Option<i64>,
    pub(crate) created_by: Option<Uuid>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {
    #[sea_orm(belongs_to = "super::team::Entity", from = "Column::TeamId", to = "super::team::Column::Id")]
    Team,
}

impl Related<super::team::Entity> for Entity {
    fn to() -> RelationDef {
        Relation::Team.def()
    }
}

impl ActiveModelBehavior for ActiveModel {}
