//! An endpoint and what was sent to it.

use std::time::Duration;

use crate::credentials::Environment;
use crate::ids::{DeliveryId, EndpointId, TeamId};
use crate::target::TargetUrl;
use crate::timestamp::Timestamp;
use crate::webhooks::{Event, Events};

/// Where a team wants its messages. Its secrets are no part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Its id.
    pub id: EndpointId,
    /// Whose it is.
    pub team: TeamId,
    /// Grabs of which environment it hears of.
    pub environment: Environment,
    /// Where messages go.
    pub url: TargetUrl,
    /// What it hears of.
    pub events: Events,
    /// For people.
    pub description: String,
    /// Why it gets no messages, when it gets none.
    pub disabled: Option<Disabled>,
    /// When it was registered.
    pub created_at: Timestamp,
}

/// Why an endpoint gets no messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disabled {
    /// Its owner asked for it.
    Requested,
    /// It answered 410.
    Gone,
    /// It failed for too long.
    Failing,
}

impl Disabled {
    /// Every reason.
    pub const ALL: [Self; 3] = [Self::Requested, Self::Gone, Self::Failing];

    /// The wire word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Requested => "requested",
            Self::Gone => "gone",
            Self::Failing => "failing",
        }
    }
}

/// One message to one endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Its id.
    pub id: DeliveryId,
    /// What it is about.
    pub event: Event,
    /// Attempts begun.
    pub attempt: u32,
    /// How it stands.
    pub status: DeliveryStatus,
    /// The HTTP status of the last attempt that ended; absent when there was no answer.
    pub status_code: Option<u16>,
    /// Why the last attempt that ended had no answer, when it had none.
    pub no_answer: Option<NoAnswer>,
    /// How long the last attempt that ended took.
    pub took: Option<Duration>,
    /// When the last attempt that ended was made.
    pub attempted_at: Option<Timestamp>,
    /// When the next one is due, if another follows.
    pub next_attempt_at: Option<Timestamp>,
    /// Since when it is owed.
    pub created_at: Timestamp,
}

/// How a delivery stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryStatus {
    /// An attempt is due or under way, and none has failed since it became so.
    Pending,
    /// The endpoint answered 2xx.
    Delivered,
    /// The last attempt failed and another will follow.
    Failed,
    /// No further attempt will follow.
    Exhausted,
}

impl DeliveryStatus {
    /// Every one.
    pub const ALL: [Self; 4] = [Self::Pending, Self::Delivered, Self::Failed, Self::Exhausted];
}

/// Why an attempt had no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    /// The host has an address that is not public.
    Refused,
    /// The host has no address.
    Unresolved,
    /// Nobody takes connections there.
    Unreachable,
    /// The other side is not who it should be.
    Tls,
    /// The other side does not speak HTTP, or stopped to.
    Http,
    /// It took too long.
    TimedOut,
}

impl NoAnswer {
    /// Every reason.
    pub const ALL: [Self; 6] =
        [Self::Refused, Self::Unresolved, Self::Unreachable, Self::Tls, Self::Http, Self::TimedOut];
}

/// The message's id, the same at every attempt. A message has one receiver, so it is the delivery's id in other words.
pub fn message_id(delivery: DeliveryId) -> String {
    format!("msg_{}", delivery.0.simple())
}
