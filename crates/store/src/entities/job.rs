//! The open part of a live grab: small, hot, and deleted at the end. Whoever deletes it ends the grab.

use grabd_domain::Timestamp;
use grabd_domain::grabs::{Class, ImageKey};
use grabd_domain::limits::LEASE_FLOOR;
use sea_orm::Condition;
use sea_orm::entity::prelude::*;

use crate::codes;
use crate::{Error, Result};

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "job")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) grab_id: Uuid,
    pub(crate) team_id: Uuid,
    pub(crate) class: i16,
    /// The fair rank: lower goes first.
    pub(crate) vt: i64,
    pub(crate) not_before: i64,
    pub(crate) deadline_at: i64,
    /// Of the held credit.
    pub(crate) lot_id: i64,
    /// Renders begun.
    pub(crate) attempt: i16,
    /// The right to end the grab.
    pub(crate) lease_token: Option<Uuid>,
    pub(crate) lease_until: Option<i64>,
    pub(crate) session_id: Option<Uuid>,
    pub(crate) upload_key: Option<String>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {
    #[sea_orm(belongs_to = "super::grab::Entity", from = "Column::GrabId", to = "super::grab::Column::Id")]
    Grab,
}

impl Related<super::grab::Entity> for Entity {
    fn to() -> RelationDef {
        Relation::Grab.def()
    }
}

impl ActiveModelBehavior for ActiveModel {}

/// Waits for a slot: nobody has it.
pub(crate) fn is_waiting(class: Class) -> Condition {
    Condition::all().add(Column::Class.eq(codes::class(class))).add(Column::LeaseUntil.is_null())
}

/// May be given to a slot now: it waits, its pause after a lost attempt is over, and a render may still finish in time.
pub(crate) fn is_leasable(class: Class, now: Timestamp) -> Condition {
    is_waiting(class).add(Column::NotBefore.lte(now.as_ms())).add(Column::DeadlineAt.gt((now + LEASE_FLOOR).as_ms()))
}

impl Model {
    /// Where the running attempt puts its picture.
    pub(crate) fn upload_key(&self) -> Result<Option<ImageKey>> {
        let parse = |text: &String| ImageKey::parse(text).ok_or(Error::Inconsistent("an upload key of another shape"));
        self.upload_key.as_ref().map(parse).transpose()
    }

    pub(crate) fn attempts(&self) -> Result<u32> {
        codes::read_count(self.attempt.into())
    }
}
