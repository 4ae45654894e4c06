//! The second factor of accounts: turning it on and off, and sessions that are opened with it.
//!
//! *Invariant:* a code of an authenticator app or a recovery code is used up in the transaction of what it allows, by one
//! conditional statement. Of two concurrent uses of a code, one is refused.

pub(crate) mod change;
pub(crate) mod factor;
pub(crate) mod sign_in;
