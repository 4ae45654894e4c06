//! The recorded API requests of a team: the list, and one of them. `filter` reads the query, and `view` prepares requests for
//! display.

mod filter;
pub(crate) mod find;
pub(crate) mod list;
pub(crate) mod show;
mod view;

/// Redirects to a request of one of the user's teams.
pub(crate) const FIND: &str = "/requests";
/// The list.
pub(crate) const LIST: &str = "/teams/{team}/requests";
/// One request.
pub(crate) const ONE: &str = "/teams/{team}/requests/{request}";

/// The path segment of these pages, for the navigation.
const PAGE: &str = "requests";
