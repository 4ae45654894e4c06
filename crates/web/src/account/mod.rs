//! The page of a user's own account.

pub(crate) mod delete;
mod factor_fields;
pub(crate) mod passkeys;
pub(crate) mod password;
pub(crate) mod second_factor;
pub(crate) mod sessions;
pub(crate) mod show;

/// The path of the page.
pub(crate) const PATH: &str = crate::paths::ACCOUNT;
