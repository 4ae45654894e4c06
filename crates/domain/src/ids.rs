//! Typed identifiers. Ids of different kinds cannot be mixed up.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            /// Accepts only the hyphenated form, the one that `Display` prints.
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text.len() {
                    36 => Uuid::try_parse(text).map(Self),
                    _ => Uuid::try_parse("").map(Self),
                }
            }
        }
    };
}

id! {
    /// A team: the owner of keys, credits and grabs.
    TeamId
}
id! {
    /// A grab. UUIDv7, so that ids sort by creation time.
    GrabId
}
id! {
    /// A monitor: a capture that is repeated by a schedule. The id is not secret.
    MonitorId
}
id! {
    /// A run of a monitor. The id is not secret.
    RunId
}
id! {
    /// A job that captures a site. UUIDv7, so that ids sort by creation time. The id is not secret.
    SiteId
}
id! {
    /// A page of a job that captures a site. It follows from the job and the address.
    SitePageId
}
id! {
    /// A payer: the first owner of a team, or the team itself if nobody owns it.
    PayerId
}
id! {
    /// An API key. The id is not secret.
    KeyId
}
id! {
    /// A recorded API request. UUIDv7, so that ids sort by time.
    ApiRequestId
}
id! {
    /// A user account.
    UserId
}
id! {
    /// An invitation to a team. The id is not secret.
    InvitationId
}
id! {
    /// A passkey of a user. The id is not secret.
    PasskeyId
}
id! {
    /// An OAuth grant: a user's permission for an app. The id is not secret.
    GrantId
}
id! {
    /// The token of a lease. It is required to finish the attempt.
    LeaseToken
}
id! {
    /// One session of a renderer with a core, from attach to disconnect.
    SessionId
}
id! {
    /// A process of a cluster, from one start to its end. UUIDv7, so that ids sort by the time of the start.
    NodeId
}
id! {
    /// A webhook endpoint.
    EndpointId
}
id! {
    /// A proxy of a team. The id is not secret.
    ProxyId
}
id! {
    /// A webhook delivery: one message to one endpoint.
    DeliveryId
}

impl SitePageId {
    /// The page of a job with this address, in normal form. Each address has one page, however often it is found.
    pub fn of(site: SiteId, address: &str) -> Self {
        Self(Uuid::new_v5(&site.0, address.as_bytes()))
    }
}

impl PayerId {
    /// The payer that the captures of a payer's signed links are counted for.
    #[must_use]
    pub fn for_links(self) -> Self {
        Self(Uuid::new_v5(&self.0, b"links"))
    }
}

/// A credit lot. The number is assigned by the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LotId(pub i64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_parse_only_in_hyphenated_form() {
        assert!("01993e1c-7b1a-7000-8000-0123456789ab".parse::<GrabId>().is_ok());
        for text in ["", "01993e1c7b1a700080000123456789ab", "{01993e1c-7b1a-7000-8000-0123456789ab}", "not-a-uuid"] {
            assert!(text.parse::<GrabId>().is_err(), "{text}");
        }
    }
}
