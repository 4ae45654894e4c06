//! What somebody sees and changes of their own account.

pub(crate) mod password;
pub(crate) mod sessions;
pub(crate) mod show;

/// The path of the page.
pub(crate) const PATH: &str = "/account";
