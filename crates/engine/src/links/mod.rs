//! Signed links: who signs them, and what they open.

mod create_once;
mod in_flight;
mod limits;
mod open;
mod secret;
mod signed;

pub use in_flight::LinkError;
pub(crate) use in_flight::LinksInFlight;
pub(crate) use limits::LinkLimits;
pub use open::{OpenedLink, open, verify};
pub use secret::{LinkCredentials, LinkSecretError, credentials, find_key_team, replace, replace_secret, reveal};
