//! Files beside the images of grabs, by the keys of their URLs. Triggers delete the rows of deleted images.

use grabd_domain::capture::{BesideName, FileKind};
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

/// The number of the image in the first further viewport. Those of the others follow.
const FIRST_VIEWPORT: i16 = 16;

/// The number of the first slice. Those of the others follow.
const FIRST_SLICE: i16 = 64;

/// The stored number of a file: that of its kind, or of its place among the slices or viewports. A grab has at most one file of each
/// number.
pub(crate) fn kind(name: BesideName) -> i16 {
    match name {
        BesideName::Also(FileKind::Html) => 0,
        BesideName::Also(FileKind::Text) => 1,
        BesideName::Also(FileKind::Markdown) => 2,
        BesideName::Also(FileKind::Links) => 3,
        BesideName::Also(FileKind::Pdf) => 4,
        BesideName::Also(FileKind::Report) => 5,
        BesideName::Also(FileKind::Elements) => 6,
        BesideName::Also(FileKind::Difference) => 8,
        BesideName::Also(FileKind::Marks) => 9,
        BesideName::Slice(number) => FIRST_SLICE + i16::from(number.get()) - 1,
        BesideName::Viewport(number) => FIRST_VIEWPORT + i16::from(number.get()) - 1,
    }
}

/// `None` for kinds of a later version.
pub(crate) fn read_kind(number: i16) -> Option<BesideName> {
    BesideName::all().find(|of| kind(*of) == number)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_file_has_a_number_of_its_own() {
        let numbers: HashSet<i16> = BesideName::all().map(kind).collect();
        assert_eq!(numbers.len(), BesideName::all().count());
        assert!(BesideName::all().all(|name| read_kind(kind(name)) == Some(name)));
        assert_eq!((read_kind(63), read_kind(128), read_kind(-1)), (None, None, None));
    }
}
