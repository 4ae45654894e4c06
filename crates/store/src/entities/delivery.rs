//! One message to one endpoint: owed, sent, or given up.

use std::time::Duration;

use grabd_domain::Timestamp;
use grabd_domain::ids::DeliveryId;
use grabd_domain::webhooks::{Delivery, DeliveryStatus, Event, NoAnswer};
use sea_orm::entity::prelude::*;

use crate::codes::{read_count, read_time};
use crate::{Error, Result};

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "delivery")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) id: Uuid,
    pub(crate) endpoint_id: Uuid,
    /// What it is about; NULL for a test.
    pub(crate) grab_id: Option<Uuid>,
    pub(crate) event: i16,
    /// The message, from the first attempt on.
    pub(crate) body: Option<String>,
    pub(crate) state: i16,
    /// Attempts begun.
    pub(crate) attempt: i16,
    /// When an attempt is due; while one is under way, when another would be. NULL: none follows.
    pub(crate) next_at: Option<i64>,
    pub(crate) last_code: Option<i16>,
    /// Why the last attempt had no answer; NULL: it had one, or there was none.
    pub(crate) no_answer: Option<i16>,
    /// How long the last attempt took.
    pub(crate) took_ms: Option<i32>,
    pub(crate) attempted_at: Option<i64>,
    pub(crate) created_at: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// A delivery from its row, without its message.
pub(crate) fn read(row: &Model) -> Result<Delivery> {
    let code = |code: i16| u16::try_from(code).map_err(|_| Error::Inconsistent("an HTTP status below zero"));
    Ok(Delivery {
        id: DeliveryId(row.id),
        event: read_event(row.event)?,
        attempt: read_count(row.attempt.into())?,
        status: read_state(row.state)?,
        status_code: row.last_code.map(code).transpose()?,
        no_answer: row.no_answer.map(read_no_answer).transpose()?,
        took: row.took_ms.map(|ms| Duration::from_millis(u64::try_from(ms).unwrap_or(0))),
        attempted_at: read_time(row.attempted_at),
        next_attempt_at: read_time(row.next_at),
        created_at: Timestamp::from_ms(row.created_at),
    })
}

pub(crate) const fn event(event: Event) -> i16 {
    match event {
        Event::GrabDone => 0,
        Event::GrabFailed => 1,
        Event::Test => 2,
    }
}

pub(crate) fn read_event(code: i16) -> Result<Event> {
    [Event::GrabDone, Event::GrabFailed, Event::Test]
        .into_iter()
        .find(|known| event(*known) == code)
        .ok_or(Error::Inconsistent("an unknown event"))
}

pub(crate) const fn state(status: DeliveryStatus) -> i16 {
    match status {
        DeliveryStatus::Pending => 0,
        DeliveryStatus::Delivered => 1,
        DeliveryStatus::Failed => 2,
        DeliveryStatus::Exhausted => 3,
    }
}

fn read_state(code: i16) -> Result<DeliveryStatus> {
    DeliveryStatus::ALL
        .into_iter()
        .find(|known| state(*known) == code)
        .ok_or(Error::Inconsistent("an unknown state of a delivery"))
}

pub(crate) const fn no_answer(why: NoAnswer) -> i16 {
    match why {
        NoAnswer::Refused => 0,
        NoAnswer::Unresolved => 1,
        NoAnswer::Unreachable => 2,
        NoAnswer::Tls => 3,
        NoAnswer::Http => 4,
        NoAnswer::TimedOut => 5,
    }
}

fn read_no_answer(code: i16) -> Result<NoAnswer> {
    NoAnswer::ALL
        .into_iter()
        .find(|known| no_answer(*known) == code)
        .ok_or(Error::Inconsistent("an attempt without an answer for an unknown reason"))
}
