//! Passkeys: adding, renaming and removing them, and the challenges that they answer.
//!
//! *Invariant:* a passkey exists only while the second factor of its user is on, whose row it refers to. So no session
//! is opened with the password alone for somebody who has a passkey.

pub(crate) mod add;
pub(crate) mod challenge;
pub(crate) mod remove;
pub(crate) mod rename;
pub(crate) mod used;
