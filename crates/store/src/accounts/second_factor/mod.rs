//! The second factor of accounts: turning it on and off, and sessions that are opened with it.
//!
//! *Invariant:* a code of an authenticator app, a recovery code or the answer of a passkey is used up in the transaction of
//! what it allows. Of two concurrent uses, one is refused.

pub(crate) mod app;
pub(crate) mod change;
pub(crate) mod codes;
pub(crate) mod factor;
pub(crate) mod sign_in;
