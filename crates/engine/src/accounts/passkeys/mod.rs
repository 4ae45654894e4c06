//! Passkeys: WebAuthn credentials (W3C Web Authentication Level 3) with which people sign in, instead of a password and as
//! their second factor. Each needs user verification, such as a PIN or a fingerprint, and can be found by its device
//! without an e-mail address.
//!
//! A challenge is not stored before its answer: a sealed token with the browser contains it.

pub(super) mod add;
pub(super) mod manage;
pub(super) mod relying_party;
mod sealed;
pub(super) mod sign_in;
pub(super) mod verify;
