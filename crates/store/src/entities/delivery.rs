//! Webhook deliveries: one message to one endpoint.

use std::time::Duration;

use grabd_domain::Timestamp;
use grabd_domain::ids::DeliveryId;
use grabd_domain::webhooks::{Delivery, DeliveryError, DeliveryStatus, Event};
use sea_orm::entity::prelude::*;

use crate::codes::{read_count, read_time};
use crate::{Error, Result};

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "delivery")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) id: Uuid,
    pub(crate) endpoint_id: Uuid,
    /// The grab the message reports; NULL for messages about none.
    pub(crate) grab_id: Option<Uuid>,
    pub(crate) event: i16,
    /// With the event of a done grab, 1 means that its image has changed. With that of a test, 1 means that the message is
    /// about a low balance instead: SQLite cannot extend the check of `event`.
    pub(crate) changed: i16,
    /// The message body. Set by the first attempt, unless the message is about no grab.
    pub(crate) body: Option<String>,
    pub(crate) state: i16,
    /// Attempts started.
    pub(crate) attempt: i16,
    /// When the next attempt is due; during an attempt, when its lease ends. NULL: no attempt follows.
    pub(crate) next_at: Option<i64>,
    pub(crate) last_code: Option<i16>,
    /// Why the last attempt got no HTTP response; NULL if it got one or no attempt ended yet.
    pub(crate) no_answer: Option<i16>,
    /// Duration of the last attempt.
    pub(crate) took_ms: Option<i32>,
    pub(crate) attempted_at: Option<i64>,
    pub(crate) created_at: i64,
    /// Why the message is only sent on request; NULL: it is sent. 0: too many were open.
    pub(crate) not_sent: Option<i16>,
    /// What happened to a monitor, with the event of a test; NULL: the message is about none.
    pub(crate) monitor_event: Option<i16>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// Converts a row, without the message body.
pub(crate) fn read(row: &Model) -> Result<Delivery> {
    let code = |code: i16| u16::try_from(code).map_err(|_| Error::Inconsistent("negative HTTP status"));
    Ok(Delivery {
        id: DeliveryId(row.id),
        event: read_event(row)?,
        attempt: read_count(row.attempt.into())?,
        status: read_state(row.state)?,
        status_code: row.last_code.map(code).transpose()?,
        error: match row.not_sent {
            None => row.no_answer.map(read_no_answer).transpose()?,
            Some(0) => Some(DeliveryError::TooManyOpen),
            Some(_) => return Err(Error::Inconsistent("unknown reason of a message that is not sent")),
        },
        took: row.took_ms.map(|ms| Duration::from_millis(u64::try_from(ms).unwrap_or(0))),
        attempted_at: read_time(row.attempted_at),
        next_attempt_at: read_time(row.next_at),
        created_at: Timestamp::from_ms(row.created_at),
    })
}

/// The values of `event`, `changed` and `monitor_event`.
pub(crate) const fn event(event: Event) -> (i16, i16, Option<i16>) {
    match event {
        Event::GrabDone => (0, 0, None),
        Event::GrabFailed => (1, 0, None),
        Event::GrabChanged => (0, 1, None),
        Event::Test => (2, 0, None),
        Event::CreditsLow => (2, 1, None),
        Event::MonitorChanged => (2, 0, Some(0)),
        Event::MonitorFailed => (2, 0, Some(1)),
        Event::MonitorRecovered => (2, 0, Some(2)),
        // The combination is free. SQLite cannot extend the check of `monitor_event`.
        Event::SiteFinished => (2, 1, Some(0)),
    }
}

pub(crate) fn read_event(row: &Model) -> Result<Event> {
    Event::SUBSCRIBABLE
        .into_iter()
        .chain([Event::Test])
        .find(|known| event(*known) == (row.event, row.changed, row.monitor_event))
        .ok_or(Error::Inconsistent("unknown event code"))
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
        .ok_or(Error::Inconsistent("unknown delivery state code"))
}

/// The value of `no_answer`, if the error is that of an attempt.
pub(crate) const fn no_answer(why: DeliveryError) -> Option<i16> {
    match why {
        DeliveryError::Refused => Some(0),
        DeliveryError::Unresolved => Some(1),
        DeliveryError::Unreachable => Some(2),
        DeliveryError::Tls => Some(3),
        DeliveryError::Http => Some(4),
        DeliveryError::TimedOut => Some(5),
        DeliveryError::TooManyOpen => None,
    }
}

fn read_no_answer(code: i16) -> Result<DeliveryError> {
    DeliveryError::OF_ATTEMPTS
        .into_iter()
        .find(|known| no_answer(*known) == Some(code))
        .ok_or(Error::Inconsistent("unknown no-answer code"))
}
