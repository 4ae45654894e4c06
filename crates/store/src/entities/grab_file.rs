//! Attachments of grabs, by the keys of their URLs. Triggers delete the rows of deleted images.

use grabd_domain::capture::{AttachmentName, FileKind};
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

/// The number of the first image that a step took. Those of the others follow.
const FIRST_STEP: i16 = 24;

/// The number of the first slice. Those of the others follow.
const FIRST_SLICE: i16 = 64;

/// The stored number of a file: that of its kind, or of its place among the slices, viewports or
/// images of steps. A grab has at most one file of each number.
pub(crate) fn kind(name: AttachmentName) -> i16 {
    match name {
        AttachmentName::Also(FileKind::Html) => 0,
        AttachmentName::Also(FileKind::Text) => 1,
        AttachmentName::Also(FileKind::Markdown) => 2,
        AttachmentName::Also(FileKind::Links) => 3,
        AttachmentName::Also(FileKind::Pdf) => 4,
        AttachmentName::Also(FileKind::Report) => 5,
        AttachmentName::Also(FileKind::Elements) => 6,
        AttachmentName::Also(FileKind::Accessibility) => 12,
        AttachmentName::Also(FileKind::Difference) => 8,
        AttachmentName::Also(FileKind::Marks) => 9,
        AttachmentName::Also(FileKind::Mhtml) => 10,
        AttachmentName::Also(FileKind::Har) => 11,
        AttachmentName::Also(FileKind::Thumbnail) => 13,
        AttachmentName::Also(FileKind::Evidence) => 14,
        AttachmentName::Slice(number) => FIRST_SLICE + i16::from(number.get()) - 1,
        AttachmentName::Viewport(number) => FIRST_VIEWPORT + i16::from(number.get()) - 1,
        AttachmentName::Step(number) => FIRST_STEP + i16::from(number.get()) - 1,
    }
}

/// `None` for kinds of a later version.
pub(crate) fn read_kind(number: i16) -> Option<AttachmentName> {
    AttachmentName::all().find(|of| kind(*of) == number)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_file_has_a_number_of_its_own() {
        let numbers: HashSet<i16> = AttachmentName::all().map(kind).collect();
        assert_eq!(numbers.len(), AttachmentName::all().count());
        assert!(AttachmentName::all().all(|name| read_kind(kind(name)) == Some(name)));
        assert_eq!((read_kind(63), read_kind(128), read_kind(-1)), (None, None, None));
    }
}
