//! The pages of sites: one row for each address.

use grabd_domain::grabs::ImageKey;
use grabd_domain::ids::GrabId;
use grabd_domain::site::{PageState, SitePage, SkipReason};
use sea_orm::entity::prelude::*;

use super::grab;
use super::site::read_error;
use crate::codes::read_count;
use crate::{Error, Result};

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "site_pages")]
pub(crate) struct Model {
    /// It follows from the job and the address.
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) id: Uuid,
    pub(crate) site_id: Uuid,
    /// From 1, in the order of discovery.
    pub(crate) number: i32,
    pub(crate) url: String,
    pub(crate) depth: i16,
    /// The number of the page with the link, or the index of the sitemap. NULL: the start page.
    pub(crate) found_on: Option<i32>,
    pub(crate) state: i16,
    pub(crate) skipped: Option<i16>,
    /// NULL: there is none, or it is not noted yet.
    pub(crate) grab_id: Option<Uuid>,
    /// When its capture began. NULL: it is not being captured.
    pub(crate) started_at: Option<i64>,
    pub(crate) error_code: Option<String>,
    pub(crate) error_message: Option<String>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// From a page to its grab.
pub(crate) fn to_grab() -> RelationDef {
    Entity::belongs_to(grab::Entity).from(Column::GrabId).to(grab::Column::Id).into()
}

pub(crate) const fn state(state: PageState) -> i16 {
    match state {
        PageState::Waiting => 0,
        PageState::Capturing => 1,
        PageState::Done => 2,
        PageState::Failed => 3,
        PageState::Skipped => 4,
    }
}

pub(crate) fn read_state(code: i16) -> Result<PageState> {
    PageState::ALL
        .into_iter()
        .find(|known| state(*known) == code)
        .ok_or(Error::Inconsistent("unknown state code of a page"))
}

pub(crate) const fn skipped(reason: SkipReason) -> i16 {
    match reason {
        SkipReason::Robots => 0,
        SkipReason::OtherSite => 1,
        SkipReason::Excluded => 2,
        SkipReason::NotHtml => 3,
        SkipReason::MaxPages => 4,
        SkipReason::PrivateAddress => 5,
        SkipReason::Canceled => 6,
        SkipReason::OutOfCredits => 7,
    }
}

fn read_skipped(code: i16) -> Result<SkipReason> {
    SkipReason::ALL
        .into_iter()
        .find(|known| skipped(*known) == code)
        .ok_or(Error::Inconsistent("unknown reason of a skipped page"))
}

/// Converts a row, with the address that it was found on and the key of its image.
pub(crate) fn read(row: &Model, found_on: Option<String>, image: Option<ImageKey>) -> Result<SitePage> {
    Ok(SitePage {
        number: read_count(row.number)?,
        url: row.url.clone(),
        depth: read_count(row.depth.into())?,
        found_on,
        state: read_state(row.state)?,
        skipped_because: row.skipped.map(read_skipped).transpose()?,
        grab: row.grab_id.map(GrabId),
        image,
        error: read_error(row.error_code.as_ref(), row.error_message.as_ref()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_read_as_what_was_written() {
        for known in PageState::ALL {
            assert_eq!(read_state(state(known)).unwrap(), known);
        }
        for known in SkipReason::ALL {
            assert_eq!(read_skipped(skipped(known)).unwrap(), known);
        }
        assert!(read_state(5).is_err() && read_skipped(8).is_err());
    }
}
