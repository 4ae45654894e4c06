//! The egress guard. All connections made for a caller go through it: the browser's proxy, the admission of grabs, and
//! webhooks.
//!
//! [`Guard`] resolves a name, checks every address against the table in `grabd_domain::address`, and connects only to
//! checked addresses. `tunnel` connects through the proxy of a team, whose address and targets are checked in the same
//! way. Rules about addresses and ports belong in that table, rules about names in `grabd_domain::target`. A new reason
//! is a variant of [`EgressError`] and its label in [`EgressError::reason`].
//!
//! *Invariant:* this crate never connects to an unchecked address, never falls back to another resolver, and never reads
//! the hosts file or a search list. A name resolves the same way on every machine, and errors fail closed.
#![warn(missing_docs)]

mod dial;
mod error;
mod guard;
mod interfaces;
mod lookup;
mod metrics;
mod tls;
mod tunnel;

pub use error::EgressError;
pub use guard::{Guard, GuardError, Options};
pub use tls::{ClientTls, TlsError};
pub use tunnel::{EgressStream, Tunnel};

#[cfg(test)]
mod tests;
