//! Jobs: the queue entries of open live grabs. The table is small and hot. Deleting the job ends the grab.

use grabd_domain::Timestamp;
use grabd_domain::admission::Payer;
use grabd_domain::grabs::{Class, ImageKey};
use grabd_domain::ids::PayerId;
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
    /// The payer that the slot is counted for. `None`: written by an earlier version; the payer is the team.
    pub(crate) account_id: Option<Uuid>,
    /// Whether the payer has paid.
    pub(crate) paid: bool,
    pub(crate) class: i16,
    /// Fair queue rank; lower ranks are leased first.
    pub(crate) vt: i64,
    pub(crate) not_before: i64,
    pub(crate) deadline_at: i64,
    /// Lot of the held credit.
    pub(crate) lot_id: i64,
    /// Attempts started.
    pub(crate) attempt: i16,
    /// Token of the lease; required to end the grab.
    pub(crate) lease_token: Option<Uuid>,
    pub(crate) lease_until: Option<i64>,
    pub(crate) session_id: Option<Uuid>,
    pub(crate) upload_key: Option<String>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// Waiting for a slot: not leased.
pub(crate) fn is_waiting(class: Class) -> Condition {
    Condition::all().add(Column::Class.eq(codes::class(class))).add(Column::LeaseUntil.is_null())
}

/// Can be leased now: it waits, its backoff after a lost attempt is over, and enough time is left before the deadline.
pub(crate) fn is_leasable(class: Class, now: Timestamp) -> Condition {
    is_waiting(class).add(Column::NotBefore.lte(now.as_ms())).add(Column::DeadlineAt.gt((now + LEASE_FLOOR).as_ms()))
}

impl Model {
    /// The payer that the slot is counted for.
    pub(crate) fn payer(&self) -> Payer {
        Payer { id: PayerId(self.account_id.unwrap_or(self.team_id)), has_paid: self.paid }
    }

    /// Image key of the running attempt.
    pub(crate) fn upload_key(&self) -> Result<Option<ImageKey>> {
        let parse = |text: &String| ImageKey::parse(text).ok_or(Error::Inconsistent("malformed upload key"));
        self.upload_key.as_ref().map(parse).transpose()
    }

    pub(crate) fn attempts(&self) -> Result<u32> {
        codes::read_count(self.attempt.into())
    }
}
