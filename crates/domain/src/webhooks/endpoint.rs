//! Endpoints and deliveries.

use std::time::Duration;

use crate::credentials::{Environment, Principal};
use crate::ids::{DeliveryId, EndpointId, GrantId, TeamId};
use crate::target::TargetUrl;
use crate::timestamp::Timestamp;
use crate::webhooks::{Event, Events};

/// A webhook endpoint, without its secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The id.
    pub id: EndpointId,
    /// The owning team.
    pub team: TeamId,
    /// The environment of the grabs it gets messages about.
    pub environment: Environment,
    /// Target URL.
    pub url: TargetUrl,
    /// Subscribed events.
    pub events: Events,
    /// Free text.
    pub description: String,
    /// Why it is disabled. `None` if it is enabled.
    pub disabled: Option<DisabledReason>,
    /// Registration time.
    pub created_at: Timestamp,
    /// Who created it. `None` if an earlier version did not record that; it may have been an app.
    pub creator: Option<Creator>,
}

/// Who created an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Creator {
    /// Somebody with an API key.
    Key,
    /// A user in the web app.
    User,
    /// The app with this grant. The endpoint is deleted with the grant, and no other app sees it.
    App(GrantId),
}

impl From<Principal> for Creator {
    fn from(principal: Principal) -> Self {
        match principal {
            Principal::Key(_) => Self::Key,
            Principal::User(_) => Self::User,
            Principal::Grant(grant) => Self::App(grant),
        }
    }
}

/// Why an endpoint is disabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisabledReason {
    /// Disabled by its owner.
    Requested,
    /// It responded with 410.
    Gone,
    /// It failed for too long.
    Failing,
}

impl DisabledReason {
    /// All reasons.
    pub const ALL: [Self; 3] = [Self::Requested, Self::Gone, Self::Failing];

    /// The name in the contract.
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
    /// The id.
    pub id: DeliveryId,
    /// The event.
    pub event: Event,
    /// Number of attempts started.
    pub attempt: u32,
    /// The status.
    pub status: DeliveryStatus,
    /// The HTTP status of the last finished attempt. `None` if there was no response.
    pub status_code: Option<u16>,
    /// Why the last finished attempt got no response, or why none is made.
    pub error: Option<DeliveryError>,
    /// Duration of the last finished attempt.
    pub took: Option<Duration>,
    /// Start time of the last finished attempt.
    pub attempted_at: Option<Timestamp>,
    /// When the next attempt is due. `None` if none follows.
    pub next_attempt_at: Option<Timestamp>,
    /// Creation time.
    pub created_at: Timestamp,
}

/// Status of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryStatus {
    /// An attempt is due or under way, and none has failed since it became so.
    Pending,
    /// The endpoint responded with 2xx.
    Delivered,
    /// The last attempt failed and another will follow.
    Failed,
    /// No further attempt will follow.
    Exhausted,
}

impl DeliveryStatus {
    /// All statuses.
    pub const ALL: [Self; 4] = [Self::Pending, Self::Delivered, Self::Failed, Self::Exhausted];
}

/// Why a delivery attempt got no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryError {
    /// The host has an address that is not public.
    Refused,
    /// The host has no address.
    Unresolved,
    /// The connection failed.
    Unreachable,
    /// TLS failed.
    Tls,
    /// The HTTP exchange failed.
    Http,
    /// The attempt timed out.
    TimedOut,
    /// No attempt was made: too many deliveries of the account were open.
    TooManyOpen,
}

impl DeliveryError {
    /// The errors of attempts.
    pub const OF_ATTEMPTS: [Self; 6] =
        [Self::Refused, Self::Unresolved, Self::Unreachable, Self::Tls, Self::Http, Self::TimedOut];

    /// The name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Unresolved => "unresolved",
            Self::Unreachable => "unreachable",
            Self::Tls => "tls",
            Self::Http => "http",
            Self::TimedOut => "timed_out",
            Self::TooManyOpen => "too_many_open",
        }
    }
}

/// Returns the message id, the same for every attempt. It is derived from the delivery id: each message has one
/// receiver.
pub fn message_id(delivery: DeliveryId) -> String {
    format!("msg_{}", delivery.0.simple())
}
