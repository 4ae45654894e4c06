//! The apps that a user has connected.

pub(crate) mod disconnect;
pub(crate) mod list;

/// The path of the list.
pub(crate) const PATH: &str = crate::paths::APPS;
