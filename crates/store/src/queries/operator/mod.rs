//! What operators read: of all teams at once, and of no grab more than they need to find a fault.
//!
//! *Invariant:* whoever captured it knows a grab's address and picture. From here only its host goes out.

pub(crate) mod failures;
pub(crate) mod figures;
pub(crate) mod teams;

#[cfg(test)]
mod plans;
