//! Teams, which own keys, credits and grabs.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "team")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) id: Uuid,
    pub(crate) name: String,
    pub(crate) status: i16,
    /// Not used any more: `team_limit` has it. A former version may write and read it.
    pub(crate) async_queue_limit: Option<i32>,
    pub(crate) created_at: i64,
    pub(crate) suspended_at: Option<i64>,
    pub(crate) suspended_reason: Option<String>,
    /// The row stays, because the ledger refers to it.
    pub(crate) deleted_at: Option<i64>,
    /// Credits below which the owners get an alert. 0: never.
    pub(crate) alert_below: i32,
    /// 1: the balance is below `alert_below`, and an alert was sent if it has fallen.
    pub(crate) is_balance_low: i16,
    /// How many of the percentages of alerts the balance has fallen to.
    pub(crate) alert_stage: i16,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
