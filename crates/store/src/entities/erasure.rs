//! Deleted teams and users of whom something is still to be erased.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "erasure")]
pub(crate) struct Model {
    /// Of the team or user.
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) id: Uuid,
    pub(crate) kind: i16,
    /// Address of the user.
    pub(crate) email: Option<String>,
    /// Entries of the audit trail up to this one are done.
    pub(crate) audit_id: i64,
    pub(crate) created_at: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// `kind` of a team.
pub(crate) const TEAM: i16 = 0;
/// `kind` of a user.
pub(crate) const USER: i16 = 1;
