//! Idempotency keys and the grabs created with them.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "idem")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) team_id: Uuid,
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) env: i16,
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) key: String,
    /// SHA-256 of the effective request.
    #[sea_orm(column_name = "fp", column_type = "VarBinary(StringLen::N(32))")]
    pub(crate) fingerprint: Vec<u8>,
    pub(crate) grab_id: Uuid,
    pub(crate) created_at: i64,
    /// Whether the request was answered with a grab that existed before.
    pub(crate) cached: bool,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {
    #[sea_orm(belongs_to = "super::grab::Entity", from = "Column::GrabId", to = "super::grab::Column::Id")]
    Grab,
}

impl Related<super::grab::Entity> for Entity {
    fn to() -> RelationDef {
        Relation::Grab.def()
    }
}

impl ActiveModelBehavior for ActiveModel {}
