//! Reads for operators, across all teams. Grabs are shown only as far as needed to find a fault.
//!
//! *Invariant:* a grab's URL and image are private to its team. These queries expose only the URL's host.

pub(crate) mod domains;
pub(crate) mod failures;
pub(crate) mod figures;
pub(crate) mod teams;
pub(crate) mod users;

#[cfg(test)]
mod plans;
