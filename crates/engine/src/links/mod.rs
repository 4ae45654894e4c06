//! Signed links: who signs them, and what they open.

mod create_once;
mod in_flight;
mod open;
mod secret;

pub(crate) use in_flight::LinksInFlight;
pub use open::{OpenedLink, open, verify};
pub use secret::{LinkCredentials, LinkSecretError, credentials, find_key_team, reveal};
