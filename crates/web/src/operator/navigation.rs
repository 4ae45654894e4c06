//! The tabs of the pages for operators, and the paths in them.

use crate::page::{Tab, Tabs};

/// The overview. All other pages are below it.
pub(super) const PATH: &str = "/operator";
/// The list of all teams.
pub(super) const TEAMS: &str = "/operator/teams";
/// The rules for domains.
pub(super) const DOMAINS: &str = "/operator/domains";
/// The limits and retention periods.
pub(super) const LIMITS: &str = "/operator/limits";
/// The list of failed captures.
pub(super) const FAILURES: &str = "/operator/failures";
/// The list of all users.
pub(super) const PEOPLE: &str = "/operator/people";
/// The audit trail as a file.
pub(super) const AUDIT_CSV: &str = "/operator/audit.csv";
/// The audit trail.
pub(super) const AUDIT: &str = "/operator/audit";

/// The pages in the order of the tabs: path and label.
const PAGES: [(&str, &str); 7] = [
    (PATH, "Overview"),
    (TEAMS, "Teams"),
    (PEOPLE, "People"),
    (FAILURES, "Recent failures"),
    (DOMAINS, "Domain rules"),
    (LIMITS, "Limits"),
    (AUDIT, "Audit trail"),
];

/// The tabs. `here` is the path of the current page or of its parent.
pub(super) fn tabs(here: &str) -> Tabs {
    let tab = |(path, label): (&str, _)| Tab { path: path.to_owned(), label, is_here: path == here };
    Tabs { label: "Operator".to_owned(), links: PAGES.into_iter().map(tab).collect() }
}
