//! Reads.

pub(crate) mod accounts;
pub(crate) mod key_usage;
pub(crate) mod known_secrets;
pub(crate) mod links;
pub(crate) mod passkeys;
pub(crate) mod second_factor;
pub(crate) mod teams;
pub(crate) mod users;
