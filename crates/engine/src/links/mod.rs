//! Signed links: who signs them, and what they open.

mod create_once;
mod in_flight;
mod link_limits;
mod open;
mod secret;
mod signed;
mod state;

pub use in_flight::LinkError;
pub use open::{OpenedLink, open, verify};
pub use secret::{LinkCredentials, LinkSecretError, credentials, find_key_team, replace, replace_secret, reveal};
pub(crate) use state::Links;
