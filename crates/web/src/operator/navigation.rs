//! The navigation of the pages for operators, and the paths in it.

/// The overview. All other pages are below it.
pub(super) const PATH: &str = "/operator";
/// The list of all teams.
pub(super) const TEAMS: &str = "/operator/teams";
/// The list of failed captures.
pub(super) const FAILURES: &str = "/operator/failures";
/// The audit trail.
pub(super) const AUDIT: &str = "/operator/audit";

/// The pages in the order of the navigation: path and label.
const PAGES: [(&str, &str); 4] =
    [(PATH, "Overview"), (TEAMS, "Teams"), (FAILURES, "Recent failures"), (AUDIT, "Audit trail")];

/// A link of the navigation.
pub(super) struct Link {
    pub(super) path: &'static str,
    pub(super) label: &'static str,
    pub(super) is_here: bool,
}

/// The navigation. `here` is the path of the current page or of its parent.
pub(super) fn navigation(here: &str) -> Vec<Link> {
    PAGES.into_iter().map(|(path, label)| Link { path, label, is_here: path == here }).collect()
}
