//! Files beside the images of grabs, by the keys of their URLs. Triggers delete the rows of deleted images.

use grabd_domain::capture::FileKind;
use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "grab_file")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) key: String,
    pub(crate) grab_id: Uuid,
    pub(crate) team_id: Uuid,
    pub(crate) env: i16,
    pub(crate) kind: i16,
    pub(crate) bytes: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// The stored number of a kind.
pub(crate) const fn kind(kind: FileKind) -> i16 {
    match kind {
        FileKind::Html => 0,
        FileKind::Text => 1,
        FileKind::Markdown => 2,
        FileKind::Links => 3,
        FileKind::Pdf => 4,
        FileKind::Report => 5,
        FileKind::Elements => 6,
        FileKind::Difference => 8,
    }
}

/// `None` for kinds of a later version.
pub(crate) fn read_kind(number: i16) -> Option<FileKind> {
    FileKind::ALL.into_iter().find(|of| kind(*of) == number)
}
