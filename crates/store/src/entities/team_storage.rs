//! The bytes that each team stores. Triggers of the schema keep them.

use grabd_domain::storage::{Counted, StoredBytes};
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::ExprTrait;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "team_storage")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) team_id: Uuid,
    /// Of images of live grabs, and of their attachments.
    pub(crate) bytes: i64,
    /// Of rows of test keys.
    pub(crate) test_bytes: i64,
    /// Of live rows for which no credit was spent.
    pub(crate) uncharged_bytes: i64,
    /// Of live rows for which a credit was spent.
    pub(crate) charged_bytes: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// What a team counts against a limit.
pub(crate) fn counted(counted: Counted) -> Expr {
    let column = |column| Expr::col((Entity, column));
    match counted {
        Counted::Test => column(Column::TestBytes),
        Counted::Live => column(Column::Bytes).add(column(Column::UnchargedBytes)).add(column(Column::ChargedBytes)),
        Counted::Uncharged => column(Column::UnchargedBytes).sub(column(Column::ChargedBytes)),
    }
}

/// The numbers of a team. All are zero without a row.
pub(crate) fn read(row: Option<&Model>) -> StoredBytes {
    row.map_or(StoredBytes::default(), |row| StoredBytes {
        images: row.bytes,
        test: row.test_bytes,
        uncharged: row.uncharged_bytes,
        charged: row.charged_bytes,
    })
}
