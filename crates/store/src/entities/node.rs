//! The processes of a cluster.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "node")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) id: Uuid,
    pub(crate) role: String,
    /// By the database's clock, like `heartbeat_at`.
    pub(crate) started_at: i64,
    pub(crate) heartbeat_at: i64,
    pub(crate) version: String,
    pub(crate) address: String,
    pub(crate) slots: i32,
    pub(crate) idle: i32,
    /// Idle slots that all accounts may use.
    pub(crate) open_idle: i32,
    /// Slots that are kept for paying accounts.
    pub(crate) kept: i32,
    pub(crate) render_ms: i32,
    pub(crate) paid_render_ms: i32,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
