//! Identifiers as types, so that a team is never mistaken for a grab.

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

            /// Accepts the hyphenated form only: it is the one we ever print.
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
    /// An API key; the id is not secret.
    KeyId
}
id! {
    /// A person who signs in.
    UserId
}
id! {
    /// An invitation into a team; the id is not secret.
    InvitationId
}
id! {
    /// What a person let an app do: the right that its tokens stand for. The id is not secret.
    GrantId
}
id! {
    /// The right to finish one attempt at a grab.
    LeaseToken
}
id! {
    /// One connection of a renderer to a core, from attach to break.
    SessionId
}
id! {
    /// An endpoint for webhooks.
    EndpointId
}
id! {
    /// One message to one endpoint.
    DeliveryId
}

/// A credit lot, numbered by the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LotId(pub i64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_hyphenated_form_parses() {
        assert!("01993e1c-7b1a-7000-8000-0123456789ab".parse::<GrabId>().is_ok());
        for text in ["", "01993e1c7b1a700080000123456789ab", "{01993e1c-7b1a-7000-8000-0123456789ab}", "not-a-uuid"] {
            assert!(text.parse::<GrabId>().is_err(), "{text}");
        }
    }
}
