//! The one guard that every outgoing connection passes: the proxy in front of the browser, the admission of grabs, and
//! whatever else grabd dials on a caller's behalf.
//!
//! [`Guard`] looks a name up, checks every answer against the table in `grabd_domain::address`, and dials only an
//! address it has checked itself. To add a rule about addresses or ports, add it to that table; to add one about
//! names, to `grabd_domain::target`. To add a reason, add a variant to [`Refusal`] and its label in
//! [`Refusal::reason`].
//!
//! *Invariant:* nothing here dials an address that was not checked, falls back to another resolver when one fails, or
//! reads the hosts file or a search list: a name means the same on every machine, and failures are closed.
#![warn(missing_docs)]

mod dial;
mod guard;
mod lookup;
mod own;
mod refusal;
mod refused;

pub use guard::{Error, Guard, Options};
pub use refusal::Refusal;

#[cfg(test)]
mod tests;
