//! Requests per minute of teams, counted across the processes of a cluster.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "rate_cell")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) team_id: Uuid,
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) env: i16,
    /// Theoretical arrival time of GCRA, in microseconds of the database's clock.
    pub(crate) tat: i64,
    /// What the last request for a lease got.
    pub(crate) granted: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
