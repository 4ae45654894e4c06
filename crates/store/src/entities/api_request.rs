//! API requests that the members of a team can look up.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "api_request")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) id: Uuid,
    pub(crate) team_id: Uuid,
    pub(crate) at: i64,
    pub(crate) env: i16,
    pub(crate) key_id: Option<Uuid>,
    pub(crate) grant_id: Option<Uuid>,
    pub(crate) request_id: Option<String>,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) status: i16,
    pub(crate) code: Option<String>,
    pub(crate) message: Option<String>,
    pub(crate) host: Option<String>,
    pub(crate) options: Option<String>,
    pub(crate) grab_id: Option<Uuid>,
    pub(crate) latency_ms: i32,
    pub(crate) omitted: i32,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
